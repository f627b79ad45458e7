"""Environment variables that every process of a run needs, and the machine that it runs on."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import subprocess
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from psutil import virtual_memory

from recipe import REPOSITORY

_MODULES, _PLUGIN = "VERL_USE_EXTERNAL_MODULES", "recipe.laptop.plugin"
PYTHON_OF_RUN = "HINT_FORK_EXECUTABLE"  # what a CPU run starts in place of Python
RUN_VARIABLE = "HINT_RUN"  # the run's folder, which one run at a time may claim
CPU_ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",  # verl registers its FSDP engine for cuda and npu only
    _MODULES: _PLUGIN,
    # vLLM's first generation would compile for 15-18 s, for no steady gain on the CPU.
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # vLLM would replace executor "uni" by the multi-process one, which spins while it waits.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARN",  # verl's value, for processes that are not Ray's too
    "HF_HUB_OFFLINE": "1",
    # Threads that wait by spinning starve the others: an update took 10 times as long.
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
}
QUIET_ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
# A smaller model keeps to one thread: two make its steps 1 % faster, and round in another way.
_LARGE_BYTES = 100_000_000
_PACKAGES = (
    *("hint-rl", "verl", "vllm", "vllm-cpu", "torch", "ray", "TransferQueue", "transformers"),
    *("flash-attn", "numpy"),
)


def set_environment(config: DictConfig) -> None:
    """Set the variables that are not set yet; the user's own values win.

    verl loads the user's modules after the project's. The run's folder is always set, since a run
    may be started by another one.
    """
    given = [name for name in os.environ.pop(_MODULES, "").split(",") if name not in ("", _PLUGIN)]
    values = environment_of(config)
    for name, value in values.items():
        os.environ.setdefault(name, value)
    os.environ[_MODULES] = ",".join([_PLUGIN, *given])
    os.environ[RUN_VARIABLE] = values[RUN_VARIABLE]
    # It would print the run's device at each import. verl resets the level of its loggers.
    verl = logging.getLogger("verl.plugin.platform.platform_manager")
    verl.addFilter(lambda record: record.levelno >= logging.WARNING)


def environment_of(config: DictConfig) -> dict[str, str]:
    """Return the variables for this run's device; Ray's workers on other nodes get them too."""
    own = {
        _MODULES: _PLUGIN,
        "HINT_REPO": os.environ["HINT_REPO"],
        RUN_VARIABLE: str(Path(config.hint.run_dir).absolute()),
    }
    if config.trainer.device != "cpu":
        return QUIET_ENVIRONMENT | own
    path = OmegaConf.select(config, "actor_rollout_ref.model.path")
    files = list(Path(path).expanduser().rglob("*")) if path else []
    if not files:  # the hub has to give it
        own["HF_HUB_OFFLINE"] = "0"
    if not files or sum(each.stat().st_size for each in files if each.is_file()) >= _LARGE_BYTES:
        own["OMP_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))
        own["VLLM_CPU_KVCACHE_SPACE"] = str(min(max(1, virtual_memory().total // 2**33), 4))
    return QUIET_ENVIRONMENT | CPU_ENVIRONMENT | own


def log_to_stderr() -> None:
    """Send this package's warnings to the stderr of this process, which the run's logs keep.

    Ray sets the level of all logging in its processes to its own: errors only.
    """
    logger = logging.getLogger("recipe")
    logger.setLevel(logging.WARNING)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s:%(asctime)s:%(message)s"))
    logger.handlers, logger.propagate = [handler], False


def describe_machine() -> dict[str, Any]:
    """Return versions and Ray's resources as JSON values, without addresses, users and paths."""
    import ray

    machine: dict[str, Any] = {
        "driver": f"{os.cpu_count()} processors, {virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
    }
    for name, value in ray.cluster_resources().items():
        if name.startswith(("CPU", "GPU", "accelerator_type")):
            machine[name] = value
    versions = {each.name: each.version for each in distributions() if each.name in _PACKAGES}
    versions = {"python": platform.python_version(), **dict(sorted(versions.items()))}
    command = "describe --always --abbrev=12 --exclude=* --dirty".split()
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if (REPOSITORY / ".git").exists():  # the package's own
            git = ["git", "-C", str(REPOSITORY), *command]
            found = subprocess.check_output(git, text=True, timeout=10, stderr=subprocess.DEVNULL)
            versions["commit"] = found.strip().replace("-dirty", " with changes")
    return {"machine": machine, "version": versions}
