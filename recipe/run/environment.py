"""Environment variables that every process of a run needs, set before verl is imported."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from recipe.run.paths import model_folder

_MODULES = "VERL_USE_EXTERNAL_MODULES"
_PLUGIN = "recipe.laptop.plugin"
PYTHON_OF_RUN = "HINT_FORK_EXECUTABLE"  # what a CPU run starts in place of Python
RUN_VARIABLE = "HINT_RUN"  # the run's folder, which one run at a time may claim
CPU_ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    # verl registers its FSDP engine for cuda and npu only.
    "VERL_ENGINE_DEVICE": "cuda",
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
_MOST_CACHE_GIB = 4


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
    model = _environment_of_model(path and model_folder(str(path)))
    return QUIET_ENVIRONMENT | CPU_ENVIRONMENT | model | own


def _environment_of_model(folder: Path | None) -> dict[str, str]:
    """Return what a model takes of a CPU machine; ``None`` is one that the hub has to give."""
    hub = {"HF_HUB_OFFLINE": "0"} if folder is None else {}
    files = folder.rglob("*") if folder else ()
    if folder and sum(file.stat().st_size for file in files if file.is_file()) < _LARGE_BYTES:
        return hub
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    cache_gib = min(max(1, memory_gib // 8), _MOST_CACHE_GIB)
    threads = len(os.sched_getaffinity(0))
    return hub | {"OMP_NUM_THREADS": f"{threads}", "VLLM_CPU_KVCACHE_SPACE": f"{cache_gib}"}


def log_to_stderr() -> None:
    """Send this package's warnings to the stderr of this process, which the run's logs keep.

    Ray sets the level of all logging in its processes to its own: errors only.
    """
    logger = logging.getLogger("recipe")
    logger.setLevel(logging.WARNING)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s:%(asctime)s:%(message)s"))
    logger.handlers, logger.propagate = [handler], False
