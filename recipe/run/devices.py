"""Check the machine: whole replicas, a GPU, and Ray's CPU slots."""

from __future__ import annotations

import math
import os
from pathlib import Path

from omegaconf import DictConfig

from recipe.run.config import ROLLOUT, check, rollout_devices, setting, world_size

_NUM_CPUS = "ray_kwargs.ray_init.num_cpus"
_SIZES = [f"{kind}_parallel_size" for kind in ("tensor_model", "pipeline_model", "data")]


def has_gpu() -> bool:
    """Return whether this process sees an NVIDIA device; without torch, which takes seconds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not set(visible.replace(" ", "").split(",")) - {"", "-1"}:
        return False
    return any(Path("/dev").glob("nvidia[0-9]*")) or any(Path("/proc/driver/nvidia/gpus").glob("*"))


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


def check_machine(config: DictConfig) -> None:
    """Check that replicas are whole, and the GPU and CPU slots of a run on this machine.

    A cluster that already runs is not looked at. With ``preflight_only`` the run may be meant for
    another machine than this one, a login node.
    """
    # verl stops late over a remainder, or leaves it idle.
    size = math.prod(setting(config, f"{ROLLOUT}.{name}") or 1 for name in _SIZES)
    for devices in (world_size(config), rollout_devices(config)):
        told = f"{devices} devices are not whole replicas of {size}"
        check(devices % size == 0, f"{told} ({ROLLOUT}.{' x '.join(_SIZES)})")
    if setting(config, "ray_kwargs.ray_init.address") or os.environ.get("RAY_ADDRESS"):
        return
    is_there = setting(config, "trainer.device") != "cuda" or has_gpu()
    check(
        is_there or setting(config, "preflight_only"),
        "trainer.device=cuda, and this machine shows no NVIDIA GPU; give hardware=laptop to run on "
        "the CPU, or preflight_only=true to check the settings for another machine",
    )
    from ray._private.utils import get_num_cpus  # what Ray takes by itself: a container's quota too

    given, needed = setting(config, _NUM_CPUS), cpus_needed(config)
    slots = given or (int(get_num_cpus(override_docker_cpu_warning=True)) if is_there else needed)
    check(
        slots >= needed,
        f"{_NUM_CPUS}={given} gives Ray {slots} slots for its actors, which are no cores, and "
        f"{needed} are needed; give {_NUM_CPUS}={needed} or more",
    )
