"""Check the machine: whole replicas, devices, Ray's CPU slots and address, and loggers."""

from __future__ import annotations

import math
import netrc
import os
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, ListConfig

from recipe.hint.adapter.preflight.settings import (
    ROLLOUT,
    is_separate,
    rollout_devices,
    setting,
    world_size,
)
from recipe.run.errors import ConfigError, one_line

_NUM_CPUS, _NUM_GPUS = "ray_kwargs.ray_init.num_cpus", "ray_kwargs.ray_init.num_gpus"
_ADDRESS = "ray_kwargs.ray_init.address"
# verl reserves this many of Ray's CPUs beside each device (max_colocate_count of its pools) ...
_CPUS_PER_TRAINER = 3
# ... and this many beside each device that only rolls out (separate_async).
_CPUS_PER_ROLLOUT = 2
# The task runner and TransferQueue's controller hold one each; actors without a request need none.
_CPUS_OF_DRIVER = 2
_SIZES = [f"{kind}_parallel_size" for kind in ("tensor_model", "pipeline_model", "data")]
_NEWEST_CLUSTER = Path("/tmp/ray/ray_current_cluster")  # where Ray itself looks
# The longest of Ray's sockets in its temporary folder, and the longest path of a socket in bytes.
_RAYS_SOCKET = "ray/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store"
_LONGEST_SOCKET = 107
_ANSWER_S = 3.0
# Backends of trainer.logger that are packages of their own.
_LOGGERS = ("wandb", "mlflow", "swanlab", "clearml", "trackio", "tensorboard")


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

    Ray knows the nodes of a cluster that already runs; this process does not. With
    ``preflight_only`` the run may be meant for another machine than this one, a login node.

    Returns:
        What could not be checked because this machine has fewer GPUs than the run asks for.
    """
    _check_replicas(config)
    if address := setting(config, _ADDRESS) or os.environ.get("RAY_ADDRESS"):
        check_address(str(address))
        return []
    check_sockets(config)
    nodes, found = setting(config, "trainer.nnodes"), num_gpus()
    # Devices of the largest node; of the only one, with those that only roll out.
    wanted = setting(config, "trainer.n_gpus_per_node")
    wanted += rollout_devices(config) if nodes == 1 else 0
    is_short = setting(config, "trainer.device") == "cuda" and found < wanted
    is_elsewhere = is_short and setting(config, "preflight_only")
    if is_short and not is_elsewhere:
        _refuse_gpus(found, wanted, nodes)
    if nodes > 1 and not setting(config, "preflight_only") and not _NEWEST_CLUSTER.exists():
        raise ConfigError(
            f"trainer.nnodes={nodes} needs a cluster, and Ray would start one of this machine "
            f"alone: start it with ray start and give RAY_ADDRESS=HOST:PORT (docs/clusters.md), or "
            f"set trainer.nnodes=1"
        )
    if setting(config, _NUM_CPUS) or not is_elsewhere:
        _check_slots(config)
    if not is_elsewhere:
        return []
    each = f" on each of {nodes} nodes" if nodes > 1 else ""
    return [
        f"not checked without the GPU: {wanted} are needed{each}, this machine shows {found}; "
        f"memory, driver and kernels; {cpus_needed(config)} CPU slots on the first node"
    ]


def check_address(address: str) -> None:
    """Refuse the address of a Ray cluster that does not answer."""
    place = urlsplit(address if "://" in address else f"ray://{address}")
    if address in ("auto", "local"):
        return
    try:
        socket.create_connection((place.hostname or "", place.port or 0), _ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"RAY_ADDRESS (or {_ADDRESS}) is {address}, where no cluster answers "
            f"({one_line(error)}): unset it to run on this machine alone, or start the cluster "
            f"(ray start --head, docs/clusters.md)"
        ) from error


def check_sockets(config: DictConfig) -> None:
    """Refuse a temporary folder in which the paths of Ray's sockets would be too long."""
    given = setting(config, "ray_kwargs.ray_init._temp_dir")
    name = "RAY_TMPDIR" if "RAY_TMPDIR" in os.environ else "TMPDIR"
    folder, tail = os.environ.get(name) or "/tmp", _RAYS_SOCKET
    if given:
        name, folder, tail = "ray_kwargs.ray_init._temp_dir", given, _RAYS_SOCKET[len("ray/") :]
    length = len(os.path.join(folder, tail).encode())
    if length > _LONGEST_SOCKET:
        most = _LONGEST_SOCKET - len(tail) - 1
        raise ConfigError(
            f"{name}={folder} makes the paths of Ray's sockets {length} bytes long, and a socket "
            f"takes {_LONGEST_SOCKET}: give a folder of at most {most} bytes, like {name}=/tmp"
        )


def check_loggers(config: DictConfig) -> None:
    """Refuse a backend of ``trainer.logger`` that is unknown, not installed, or has no key."""
    from verl.utils.tracking import Tracking

    given = setting(config, "trainer.logger")
    if not isinstance(given, str | list | tuple | ListConfig):
        raise ConfigError(f"trainer.logger={given} must be a list, like [tensorboard], or []")
    known = [*Tracking.supported_backend, "tracking"]
    for each in [given] if isinstance(given, str) else given:
        if each not in known:
            raise ConfigError(f"trainer.logger={each} is unknown; choose of {', '.join(known)}")
        if each in _LOGGERS and find_spec(each) is None:
            raise ConfigError(
                f"trainer.logger={each} is not installed; pip install {each}, or drop it"
            )
        if each == "wandb" and not _has_key_of_wandb(os.environ):
            raise ConfigError(
                "trainer.logger=wandb has no key, and would ask for one after the start: run wandb "
                "login, or give WANDB_API_KEY, or WANDB_MODE=offline"
            )


def _has_key_of_wandb(environ: Mapping[str, str]) -> bool:
    """Return whether wandb starts without a question."""
    if environ.get("WANDB_MODE", "online") != "online" or "WANDB_API_KEY" in environ:
        return True
    if "WANDB_IDENTITY_TOKEN_FILE" in environ:
        return True
    files = [Path("wandb/settings"), Path("~/.config/wandb/settings").expanduser()]
    if any("mode = offline" in each.read_text("utf-8") for each in files if each.is_file()):
        return True
    host = urlsplit(environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    for name in ("~/.netrc", "~/_netrc"):
        try:
            file = Path(environ.get("NETRC", name)).expanduser()
            if netrc.netrc(file).authenticators(host):
                return True
        except (OSError, netrc.NetrcParseError):
            continue
    return False


def _check_replicas(config: DictConfig) -> None:
    """Check that replicas are whole: verl stops late over a remainder, or leaves it idle."""
    size = math.prod(setting(config, f"{ROLLOUT}.{name}") or 1 for name in _SIZES)
    pools = {"trainer": world_size(config)}
    if is_separate(config):
        pools[ROLLOUT] = rollout_devices(config)
    for pool, devices in pools.items():
        on_each = setting(config, f"{pool}.n_gpus_per_node")
        if devices % size or (on_each % size and size % on_each):
            raise ConfigError(
                f"{pool}.nnodes x {pool}.n_gpus_per_node = {devices} devices, {on_each} on each "
                f"node, are not whole replicas of {size} ({ROLLOUT}.{' x '.join(_SIZES)}), each on "
                f"whole nodes or on one; change one of them"
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


def _check_slots(config: DictConfig) -> None:
    """Check Ray's slots, which are no cores: with too few an actor never starts."""
    from ray._private.utils import get_num_cpus  # what Ray takes by itself: a container's quota too

    devices: Any = setting(config, _NUM_GPUS)
    wanted = setting(config, "trainer.n_gpus_per_node") + rollout_devices(config)
    if setting(config, "trainer.device") == "cpu" and (devices or 0) < wanted:
        raise ConfigError(
            f"{_NUM_GPUS}={devices}, but trainer and rollouts take {wanted} devices, which on the "
            f"CPU are slots of Ray; give {_NUM_GPUS}={wanted}"
        )
    given, needed = setting(config, _NUM_CPUS), cpus_needed(config)
    slots = given or int(get_num_cpus(override_docker_cpu_warning=True))
    if slots < needed:
        got = f"{given}" if given else f"null, for which Ray counts {slots} cores here"
        raise ConfigError(
            f"{_NUM_CPUS}={got}, but {needed} are needed (2, 3 per device, and one per "
            f"transfer_queue.backend.SimpleStorage.num_data_storage_units); give {_NUM_CPUS}="
            f"{needed} or more: these are slots for Ray's actors, not cores"
        )
