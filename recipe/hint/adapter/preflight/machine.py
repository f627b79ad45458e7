"""Checks of the machine: whole replicas, devices, and Ray's CPU slots."""

from __future__ import annotations

import math
import os
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import (
    ROLLOUT,
    is_separate,
    rollout_devices,
    setting,
    world_size,
)
from recipe.run.errors import ConfigError

_NUM_CPUS, _NUM_GPUS = "ray_kwargs.ray_init.num_cpus", "ray_kwargs.ray_init.num_gpus"
# verl reserves this many of Ray's CPUs beside each device (max_colocate_count of its pools) ...
_CPUS_PER_TRAINER = 3
# ... and this many beside each device that only rolls out (separate_async).
_CPUS_PER_ROLLOUT = 2
# The task runner and TransferQueue's controller hold one each; actors without a request need none.
_CPUS_OF_DRIVER = 2
_SIZES = [f"{kind}_parallel_size" for kind in ("tensor_model", "pipeline_model", "data")]
_NEWEST_CLUSTER = Path("/tmp/ray/ray_current_cluster")  # where Ray itself looks


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

    Measured with Ray alone: with one fewer, the last placement group stays pending forever.
    """
    devices = setting(config, "trainer.n_gpus_per_node")
    if setting(config, "trainer.eval_only"):
        return 1 + _CPUS_PER_ROLLOUT * devices
    units = setting(config, "transfer_queue.backend.SimpleStorage.num_data_storage_units")
    storage = math.ceil(units / setting(config, "trainer.nnodes"))
    held = _CPUS_OF_DRIVER + storage + _CPUS_PER_TRAINER * devices
    return held + _CPUS_PER_ROLLOUT * rollout_devices(config)


def check_machine(config: DictConfig) -> list[str]:
    """Check for whole replicas everywhere, and for the devices and CPU slots of a run here.

    A cluster that is already running is not looked at: Ray knows its nodes, this process does not.
    With ``preflight_only`` the run may be meant for another machine than this one, a login node.

    Returns:
        What could not be checked because this machine has fewer GPUs than the run asks for.
    """
    _check_replicas(config)
    if setting(config, "ray_kwargs.ray_init.address") or os.environ.get("RAY_ADDRESS"):
        return []
    nodes, found = setting(config, "trainer.nnodes"), num_gpus()
    # Devices of the largest node; of the only one, with those that only roll out.
    wanted = setting(config, "trainer.n_gpus_per_node")
    wanted += rollout_devices(config) if nodes == 1 else 0
    is_short = setting(config, "trainer.device") == "cuda" and found < wanted
    is_elsewhere = is_short and setting(config, "preflight_only")
    if is_short and not is_elsewhere:
        _refuse_gpus(found, wanted, nodes)
    elif not is_short:
        _check_device_slots(config)
    _check_cluster(config, nodes)
    if setting(config, _NUM_CPUS) or not is_elsewhere:
        _check_cpus(config)
    if not is_elsewhere:
        return []
    each = f" on each of {nodes} nodes" if nodes > 1 else ""
    lines = [
        f"GPUs: {wanted} are needed{each}, this machine shows {found}",
        "memory: whether weights, optimizer and vLLM's cache fit the GPUs",
        "kernels: whether driver, attention and NCCL work there",
    ]
    if not setting(config, _NUM_CPUS):
        lines.append(f"CPU slots: {cpus_needed(config)} are needed on the first node")
    return [f"not checked without the GPU: {line}" for line in lines]


def _check_cluster(config: DictConfig, nodes: int) -> None:
    """Check that several nodes are a cluster; Ray also joins the newest one of this machine."""
    if nodes > 1 and not setting(config, "preflight_only") and not _NEWEST_CLUSTER.exists():
        raise ConfigError(
            f"trainer.nnodes={nodes} needs a cluster, and Ray would start one of this machine "
            f"alone: start it with ray start and give RAY_ADDRESS=HOST:PORT (docs/clusters.md), or "
            f"set trainer.nnodes=1"
        )


def _replica_size(config: DictConfig) -> int:
    return math.prod(setting(config, f"{ROLLOUT}.{name}") or 1 for name in _SIZES)


def _check_replicas(config: DictConfig) -> None:
    """Check that replicas are whole: verl stops late over a remainder, or leaves it idle."""
    size = _replica_size(config)
    pools = {"trainer": world_size(config)}
    if is_separate(config):
        pools[ROLLOUT] = rollout_devices(config)
    for pool, devices in pools.items():
        if devices % size:
            raise ConfigError(
                f"{pool}.nnodes x {pool}.n_gpus_per_node = {devices} devices are not whole "
                f"replicas of {size} ({ROLLOUT}.{' x '.join(_SIZES)}); change one of them"
            )
        on_each = setting(config, f"{pool}.n_gpus_per_node")
        if on_each % size and size % on_each:
            raise ConfigError(
                f"{pool}.n_gpus_per_node={on_each} would put a replica of {size} devices "
                f"({ROLLOUT}.{' x '.join(_SIZES)}) on parts of two nodes; choose sizes "
                f"of which one divides the other"
            )


def _refuse_gpus(found: int, wanted: int, nodes: int) -> None:
    if not found:
        raise ConfigError(
            "trainer.device=cuda, but this machine shows no NVIDIA GPU; give hardware=laptop to "
            "run on the CPU, preflight_only=true to check the settings for another machine, or "
            "check the driver and CUDA_VISIBLE_DEVICES"
        )
    if nodes == 1:
        raise ConfigError(
            f"trainer.n_gpus_per_node={wanted}, but this machine has {found} GPUs; "
            f"give trainer.n_gpus_per_node={found} or fewer"
        )


def _check_device_slots(config: DictConfig) -> None:
    """Check Ray's slots for devices on the CPU: with too few an actor never starts."""
    wanted = setting(config, "trainer.n_gpus_per_node") + rollout_devices(config)
    given = setting(config, _NUM_GPUS)
    if setting(config, "trainer.device") == "cpu" and (given or 0) < wanted:
        raise ConfigError(
            f"{_NUM_GPUS}={given}, but trainer and rollouts take {wanted} devices, which on the "
            f"CPU are slots of Ray; give {_NUM_GPUS}={wanted}"
        )


def _check_cpus(config: DictConfig) -> None:
    from ray._private.utils import get_num_cpus  # what Ray takes by itself: a container's quota too

    given, needed = setting(config, _NUM_CPUS), cpus_needed(config)
    slots = given or int(get_num_cpus(override_docker_cpu_warning=True))
    if slots < needed:
        got = f"{given}" if given else f"null, for which Ray counts {slots} cores here"
        raise ConfigError(
            f"{_NUM_CPUS}={got}, but {needed} are needed (2, 3 per device, and one per "
            f"transfer_queue.backend.SimpleStorage.num_data_storage_units); give {_NUM_CPUS}="
            f"{needed} or more: these are slots for Ray's actors, not cores; one without a slot "
            f"never starts"
        )
