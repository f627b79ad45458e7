"""Checks of the machine: devices, Ray's CPU slots and the disk."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.errors import ConfigError
from recipe.hint.runtime.preflight.folder import nearest_folder
from recipe.hint.runtime.preflight.settings import is_separate, setting, world_size

_ROLLOUT = "actor_rollout_ref.rollout"
_PARALLEL = tuple(f"{kind}_parallel_size" for kind in ("tensor_model", "pipeline_model", "data"))
# FSDP checkpoints hold the weights and Adam's two moments, each in 4 bytes.
_BYTES_PER_PARAMETER = 12
_NUM_CPUS = "ray_kwargs.ray_init.num_cpus"
# verl reserves this many of Ray's CPUs beside each device (max_colocate_count of its pools) ...
_CPUS_PER_TRAINER = 3
# ... and this many beside each device that only rolls out (separate_async).
_CPUS_PER_ROLLOUT = 2
# The task runner and TransferQueue's controller hold one each; actors without a request need none.
_CPUS_OF_DRIVER = 2


def num_gpus(environment: Mapping[str, str] = os.environ) -> int:
    """NVIDIA devices that this process may use; no import of torch, which takes seconds."""
    found = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if not found and Path("/proc/driver/nvidia/gpus").is_dir():
        found = len(list(Path("/proc/driver/nvidia/gpus").iterdir()))
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    chosen = [name for name in visible.split(",") if name.strip() not in ("", "-1")]
    return min(found, len(chosen))


def has_gpu() -> bool:
    """Whether there is at least one."""
    return num_gpus() > 0


def check_machine(config: DictConfig) -> list[str]:
    """Check for whole replicas everywhere, and for the devices and CPU slots of a run here.

    A cluster that is already running is not looked at: Ray knows its nodes, this process does not.
    With ``preflight_only`` the run may be meant for another machine than this one, a login node.

    Returns:
        What could not be checked because this machine has fewer GPUs than the run asks for.

    Raises:
        ConfigError: With what the run asks for and what is there.
    """
    _check_replicas(config)
    if setting(config, "ray_kwargs.ray_init.address") or os.environ.get("RAY_ADDRESS"):
        return []
    if setting(config, "trainer.device") != "cuda":
        _check_slots(config)
    elif setting(config, "preflight_only") and num_gpus() < _gpus_wanted(config):
        if setting(config, _NUM_CPUS):
            _check_cpus(config)
        return _left_for_the_gpus(config)
    else:
        _check_gpus(config)
    _check_cpus(config)
    return []


def _gpus_wanted(config: DictConfig) -> int:
    """GPUs of the largest node; of the only one, with those that only roll out."""
    shared = setting(config, "trainer.nnodes") == 1
    return setting(config, "trainer.n_gpus_per_node") + (_rollout_gpus(config) if shared else 0)


def _left_for_the_gpus(config: DictConfig) -> list[str]:
    nodes = setting(config, "trainer.nnodes")
    each = f" on each of {nodes} nodes" if nodes > 1 else ""
    lines = [
        f"GPUs: {_gpus_wanted(config)} are needed{each}, this machine shows {num_gpus()}",
        "memory: whether weights, optimizer and vLLM's cache fit the GPUs",
        "kernels: whether driver, attention and NCCL work there",
    ]
    if not setting(config, _NUM_CPUS):
        lines.append(f"CPU slots: {cpus_needed(config)} are needed on the first node")
    return [f"not checked without the GPU: {line}" for line in lines]


def cpus_needed(config: DictConfig) -> int:
    """Ray CPUs that the parts of a run hold on its first node for as long as it lasts.

    Measured with Ray alone: with one fewer the last placement group stays pending for ever.
    """
    if setting(config, "trainer.eval_only"):
        return 1 + _CPUS_PER_ROLLOUT * setting(config, "trainer.n_gpus_per_node")
    nodes = setting(config, "trainer.nnodes")
    units = setting(config, "transfer_queue.backend.SimpleStorage.num_data_storage_units")
    held = _CPUS_OF_DRIVER + -(-units // nodes)
    held += _CPUS_PER_TRAINER * setting(config, "trainer.n_gpus_per_node")
    return held + _CPUS_PER_ROLLOUT * _rollout_gpus(config)


def check_disk(config: DictConfig, num_parameters: int | None, num_steps: int) -> str:
    """Room for the checkpoints.

    Returns:
        What they will take, or that none are written.

    Raises:
        ConfigError: If they do not fit on the disk.
    """
    every = setting(config, "trainer.save_freq")
    if every < 1:
        return "no checkpoints (trainer.save_freq < 1)"
    kept = saves = -(-num_steps // every)
    if keep := setting(config, "trainer.max_actor_ckpt_to_keep"):
        # With 1, verl deletes the old one only after the new one is written.
        kept = min(saves, max(keep, 2))
    if num_parameters is None:
        return f"{kept} checkpoints, one every {every} steps; size unknown"
    needed = kept * num_parameters * _BYTES_PER_PARAMETER
    root = Path(setting(config, "trainer.default_local_dir"))
    free = shutil.disk_usage(nearest_folder(root)).free
    if needed > free:
        raise ConfigError(
            f"trainer.default_local_dir={root}: {kept} checkpoints of {_gb(needed / kept)} need "
            f"{_gb(needed)}, the disk has {_gb(free)} free; lower trainer.max_actor_ckpt_to_keep, "
            f"raise trainer.save_freq, or choose another disk with hint.run_dir"
        )
    return f"{kept} checkpoints, one every {every} steps: {_gb(needed)} of {_gb(free)} free"


def _check_replicas(config: DictConfig) -> None:
    """Whole replicas: verl stops late over a remainder, or leaves its devices idle in silence."""
    size = math.prod(setting(config, f"{_ROLLOUT}.{name}") or 1 for name in _PARALLEL)
    pools = {"trainer": world_size(config)}
    if is_separate(config):
        pools[_ROLLOUT] = _rollout_gpus(config)
    for pool, devices in pools.items():
        if devices % size and not setting(config, "trainer.eval_only"):
            raise ConfigError(
                f"{pool}.nnodes x {pool}.n_gpus_per_node = {devices} devices are not whole "
                f"replicas of {size} ({_ROLLOUT}.tensor_model_parallel_size x "
                f"pipeline_model_parallel_size x data_parallel_size); change one of them"
            )


def _check_gpus(config: DictConfig) -> None:
    found, wanted = num_gpus(), _gpus_wanted(config)
    if not found:
        raise ConfigError(
            "trainer.device=cuda, but this machine shows no NVIDIA GPU; give hardware=laptop to "
            "run on the CPU, preflight_only=true to check the settings for another machine, or "
            "check the driver and CUDA_VISIBLE_DEVICES"
        )
    if setting(config, "trainer.nnodes") == 1 and wanted > found:
        raise ConfigError(
            f"trainer.n_gpus_per_node={wanted}, but this machine has {found} GPUs; "
            f"give trainer.n_gpus_per_node={found} or fewer"
        )


def _check_slots(config: DictConfig) -> None:
    """On the CPU a device is a number that Ray is told; with too few the run waits for ever."""
    name = "ray_kwargs.ray_init.num_gpus"
    wanted = setting(config, "trainer.n_gpus_per_node") + _rollout_gpus(config)
    given = setting(config, name)
    if given is None or given < wanted:
        raise ConfigError(
            f"{name}={given}, but trainer and rollouts take {wanted} devices, which on the CPU are "
            f"slots of Ray; give {name}={wanted}"
        )


def _rollout_gpus(config: DictConfig) -> int:
    """Devices that only roll out."""
    if not is_separate(config):
        return 0
    nodes = setting(config, f"{_ROLLOUT}.nnodes") or 0
    return nodes * (setting(config, f"{_ROLLOUT}.n_gpus_per_node") or 0)


def _check_cpus(config: DictConfig) -> None:
    name = _NUM_CPUS
    given, needed = setting(config, name), cpus_needed(config)
    slots = given or os.cpu_count() or 1
    if slots < needed:
        got = (
            f"{name}={given}" if given else f"{name} is not set and this machine has {slots} cores"
        )
        raise ConfigError(
            f"{got}, but {needed} are needed (2, 3 per device, and one per "
            f"transfer_queue.backend.SimpleStorage.num_data_storage_units); give {name}={needed} "
            f"or more: these are slots for Ray's actors, not cores, and the run would wait for ever"
        )


def _gb(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
