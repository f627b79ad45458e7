"""Check the machine: whole replicas, devices, Ray's CPU slots and address, and loggers."""

from __future__ import annotations

import math
import os
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig

from recipe.run.config import (
    ROLLOUT,
    check,
    files_of,
    is_separate,
    rollout_devices,
    setting,
    world_size,
)
from recipe.run.errors import ConfigError, one_line

_NUM_CPUS, _NUM_GPUS = "ray_kwargs.ray_init.num_cpus", "ray_kwargs.ray_init.num_gpus"
_ADDRESS = "ray_kwargs.ray_init.address"
_SIZES = [f"{kind}_parallel_size" for kind in ("tensor_model", "pipeline_model", "data")]
_ANSWER_S = 3.0
_KEY_OF_WANDB = ("WANDB_API_KEY", "WANDB_MODE", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_BASE_URL")


def num_gpus() -> int:
    """Count the NVIDIA devices of this process; without torch, whose import takes seconds."""
    found = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if not found and Path("/proc/driver/nvidia/gpus").is_dir():
        found = len(list(Path("/proc/driver/nvidia/gpus").iterdir()))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    return min(found, sum(name.strip() not in ("", "-1") for name in visible.split(",")))


def has_gpu() -> bool:
    """Return whether there is at least one."""
    return num_gpus() > 0


def cpus_needed(config: DictConfig) -> int:
    """Count the Ray CPUs that a run holds on its first node for as long as it lasts.

    Measured with Ray alone: with one fewer, the last placement group stays pending forever. verl
    reserves 3 beside each trainer's device and 2 beside each that only rolls out; task runner and
    TransferQueue's controller hold one each, and each storage unit one.
    """
    devices = setting(config, "trainer.n_gpus_per_node")
    if setting(config, "trainer.eval_only"):
        return 1 + 2 * devices
    units = setting(config, "transfer_queue.backend.SimpleStorage.num_data_storage_units")
    storage = math.ceil(units / setting(config, "trainer.nnodes"))
    return 2 + storage + 3 * devices + 2 * rollout_devices(config)


def check_machine(config: DictConfig) -> list[str]:
    """Check for whole replicas everywhere, and for the devices and CPU slots of a run here.

    Ray knows the nodes of a cluster that already runs; this process does not. With
    ``preflight_only`` the run may be meant for another machine than this one, a login node.

    Returns:
        What could not be checked because this machine has fewer GPUs than the run asks for.
    """
    _check_replicas(config)
    if address := setting(config, _ADDRESS) or os.environ.get("RAY_ADDRESS"):
        if address not in ("auto", "local"):
            _check_address(str(address))
        return []
    nodes, found = setting(config, "trainer.nnodes"), num_gpus()
    # Devices of the largest node; of the only one, with those that only roll out.
    wanted = setting(config, "trainer.n_gpus_per_node")
    wanted += rollout_devices(config) if nodes == 1 else 0
    is_short = setting(config, "trainer.device") == "cuda" and found < wanted
    check(
        not is_short or setting(config, "preflight_only"),
        f"trainer.device=cuda asks for {wanted} GPUs here, and this machine shows "
        f"{found or 'no NVIDIA GPU'}; give trainer.n_gpus_per_node, hardware=laptop to run on "
        f"the CPU, or preflight_only=true to check the settings for another machine",
    )
    given, needed = setting(config, _NUM_CPUS), cpus_needed(config)
    if given or not is_short:
        _check_slots(config, given, needed, wanted)
    if not is_short:
        return []
    each = f" on each of {nodes} nodes" if nodes > 1 else ""
    return [
        f"not checked without the GPU: {wanted} are needed{each}, this machine shows {found}; "
        f"memory, driver and kernels; {needed} CPU slots on the first node"
    ]


def _check_replicas(config: DictConfig) -> None:
    """Check that replicas are whole: verl stops late over a remainder, or leaves it idle."""
    size = math.prod(setting(config, f"{ROLLOUT}.{name}") or 1 for name in _SIZES)
    pools = {"trainer": world_size(config)}
    if is_separate(config):
        pools[ROLLOUT] = rollout_devices(config)
    for pool, devices in pools.items():
        on_each = setting(config, f"{pool}.n_gpus_per_node")
        check(
            devices % size == 0 and (on_each % size == 0 or size % on_each == 0),
            f"{pool}.nnodes x {pool}.n_gpus_per_node = {devices} devices, {on_each} on each node, "
            f"are not whole replicas of {size} ({ROLLOUT}.{' x '.join(_SIZES)}), each on whole "
            f"nodes or on one",
        )


def _check_address(address: str) -> None:
    """Refuse the address of a Ray cluster that does not answer."""
    place = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        socket.create_connection((place.hostname or "", place.port or 0), _ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"RAY_ADDRESS (or {_ADDRESS}) is {address}, where no cluster answers "
            f"({one_line(error)}): unset it to run on this machine alone, or start the cluster "
            f"(ray start --head, docs/clusters.md)"
        ) from error


def _check_slots(config: DictConfig, given: Any, needed: int, wanted: int) -> None:
    """Check Ray's slots, which are no cores: with too few an actor never starts."""
    from ray._private.utils import get_num_cpus  # what Ray takes by itself: a container's quota too

    devices = setting(config, _NUM_GPUS) or 0
    check(
        setting(config, "trainer.device") != "cpu" or devices >= wanted,
        f"{_NUM_GPUS}={devices}, but trainer and rollouts take {wanted} devices, which on the CPU "
        f"are slots of Ray; give {_NUM_GPUS}={wanted}",
    )
    slots = given or int(get_num_cpus(override_docker_cpu_warning=True))
    check(
        slots >= needed,
        f"{_NUM_CPUS}={given} gives Ray {slots} slots for its actors, which are no cores, and "
        f"{needed} are needed; give {_NUM_CPUS}={needed} or more",
    )


def check_loggers(config: DictConfig) -> None:
    """Refuse a backend of ``trainer.logger`` that is unknown, not installed, or has no key."""
    from verl.utils.tracking import Tracking

    for each in files_of(config, "trainer.logger"):
        known = ", ".join(Tracking.supported_backend)
        check(each in known, f"trainer.logger={each} is unknown; choose of {known}")
        packages = ("wandb", "mlflow", "swanlab", "clearml", "trackio", "tensorboard")
        is_there = each not in packages or find_spec(each)
        check(is_there, f"trainer.logger={each} is not installed; pip install {each}, or drop it")
        login = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
        check(
            each != "wandb" or os.environ.keys() & _KEY_OF_WANDB or login.is_file(),
            "trainer.logger=wandb has no key, and would ask for one after the start: run wandb "
            "login, or give WANDB_API_KEY, or WANDB_MODE=offline",
        )
