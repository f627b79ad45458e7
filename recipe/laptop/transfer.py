"""Weights from the trainer to rollout replicas of their own, on the CPU: gloo over TCP.

verl's mode ``separate_async`` needs such a transfer, and those of verl 0.9.1 need accelerators.
Settings, below ``actor_rollout_ref.rollout.checkpoint_engine``: ``backend=gloo`` and
``custom_backend_module=recipe.laptop.transfer``; verl then imports this module in every
process that sends or receives. Covered: any number of trainer ranks, replicas and nodes, whole
weights. Not covered: deltas, adapters, memory of an accelerator.
"""

from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import ray
import torch
from torch.distributed import (
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    ProcessGroupGloo,
    TCPStore,  # pyright: ignore[reportPrivateImportUsage]
)
from verl.checkpoint_engine import CheckpointEngine, CheckpointEngineRegistry
from verl.utils import fsdp_utils
from verl.workers.rollout.utils import ensure_async_iterator

BACKEND = "gloo"
# Trainer ranks other than 0: they help to gather each weight and send nothing.
_NOT_A_MEMBER = -1
_ALIGNMENT = 16  # bytes; a tensor can be viewed in place from there, whatever its type


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the members of one transfer find each other."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """One tensor in a bucket; ``start`` and ``size`` in bytes."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int
    size: int


@CheckpointEngineRegistry.register(BACKEND)  # pyright: ignore[reportAttributeAccessIssue]
class GlooCheckpointEngine(CheckpointEngine):
    """One sender, trainer rank 0, and every rollout worker; the group lives for one transfer.

    Buckets are broadcast one after the other; their tables of contents go through the store.

    Args:
        bucket_size: Bytes of a bucket; a larger weight has one of its own.
        is_master: Whether this process is trainer rank 0.
        timeout_s: Longest wait for another member in seconds. ``hint.watchdog.sync_s`` is meant
            to be shorter and to name the phase.
    """

    def __init__(
        self, bucket_size: int, is_master: bool = False, *, timeout_s: float = 3600.0
    ) -> None:
        self._bucket_size = bucket_size
        self._is_master = is_master
        self._timeout = timedelta(seconds=timeout_s)
        self._rank = _NOT_A_MEMBER
        self._store: Any = None  # TCPStore, which stores bytes though its stub says text
        self._group: Any = None  # ProcessGroupGloo, whose stub lacks broadcast

    # The base class speaks of dictionaries, but only hands on what `prepare` returns.
    def prepare(self) -> Meeting | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Open the store on the sender's machine, at a free port."""
        if not self._is_master:
            return None
        host = ray.util.get_node_ip_address().strip("[]")
        self._store = TCPStore(
            host, 0, is_master=True, timeout=self._timeout, wait_for_workers=False
        )
        return Meeting(host, self._store.port)

    @classmethod
    def build_topology(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        actor_wg_world_size: int,
        rollout_world_size: int,
        metadata: list[Meeting | None],
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Return arguments of :meth:`init_process_group`: a list each, one value per process."""
        world_size = 1 + rollout_world_size
        others = actor_wg_world_size - 1
        trainer_ranks = [0] + [_NOT_A_MEMBER] * others
        rollout_ranks = list(range(1, world_size))
        trainer, rollout = (
            {
                "rank": ranks,
                "world_size": [world_size] * len(ranks),
                "meeting": [metadata[0]] * len(ranks),
            }
            for ranks in (trainer_ranks, rollout_ranks)
        )
        return trainer, rollout

    def init_process_group(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, rank: int, world_size: int, meeting: Meeting
    ) -> None:
        """Join the transfer; returns when every member has."""
        self._rank = rank
        if rank == _NOT_A_MEMBER:
            return
        if self._store is None:
            self._store = TCPStore(
                meeting.host, meeting.port, is_master=False, timeout=self._timeout
            )
        store = PrefixStore("group", self._store)
        self._group = ProcessGroupGloo(store, rank, world_size, timeout=self._timeout)

    def finalize(self) -> None:
        """Leave the transfer: replicas may come and go before the next one."""
        self._group = self._store = None

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> dict[str, float]:
        """Send every weight once.

        All trainer ranks iterate: each step of the iteration gathers a weight from all of them.

        Returns:
            Metrics of the transfer; of the sender alone.
        """
        if self._rank == _NOT_A_MEMBER:
            async for _ in ensure_async_iterator(weights):
                pass
            return {}
        number = num_bytes = 0
        async for slots, buffer in _buckets(weights, self._bucket_size):
            self._store.set(_key(number), pickle.dumps(slots))
            await asyncio.to_thread(self._broadcast, buffer)
            number += 1
            num_bytes += buffer.numel()
        self._store.set(_key(number), pickle.dumps([]))
        return {"weight_transfer/megabytes": num_bytes / 2**20}

    async def receive_weights(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Yield names and tensors in the order in which they are sent."""
        number = 0
        while slots := await asyncio.to_thread(self._wait_for_slots, number):
            buffer = torch.empty(slots[-1].start + slots[-1].size, dtype=torch.uint8)
            await asyncio.to_thread(self._broadcast, buffer)
            for slot in slots:
                part = buffer[slot.start : slot.start + slot.size]
                yield slot.name, part.view(slot.dtype).view(slot.shape)
            number += 1

    def _wait_for_slots(self, number: int) -> list[TensorSlot]:
        return pickle.loads(self._store.get(_key(number)))

    def _broadcast(self, buffer: torch.Tensor) -> None:
        self._group.broadcast(buffer, 0).wait()


def _key(number: int) -> str:
    return f"bucket/{number}"


async def _buckets(
    weights: Iterable[tuple[str, torch.Tensor]], bucket_size: int
) -> AsyncIterator[tuple[list[TensorSlot], torch.Tensor]]:
    """Pack weights into byte buffers of at most ``bucket_size``, or of one larger weight."""
    slots: list[TensorSlot] = []
    parts: list[torch.Tensor] = []
    end = 0
    async for name, weight in ensure_async_iterator(weights):
        data = weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        if slots and start + data.numel() > bucket_size:
            yield slots, _packed(slots, parts)
            slots, parts, start = [], [], 0
        slots.append(TensorSlot(name, tuple(weight.shape), weight.dtype, start, data.numel()))
        parts.append(data)
        end = start + data.numel()
    if slots:
        yield slots, _packed(slots, parts)


def _packed(slots: list[TensorSlot], parts: list[torch.Tensor]) -> torch.Tensor:
    buffer = torch.zeros(slots[-1].start + slots[-1].size, dtype=torch.uint8)
    for slot, part in zip(slots, parts, strict=True):
        buffer[slot.start : slot.start + slot.size] = part
    return buffer


def _keep_saved_models_apart() -> None:
    """Make verl's copy of the sampling weights a copy on the CPU too.

    With several updates between two syncs, verl saves the weights that the rollouts were sampled
    from and computes the old log-probabilities under them. It saves them with ``.cpu()``, which
    on the CPU returns the live weights themselves: every later update would count as on-policy.
    """
    original = fsdp_utils.fsdp2_sharded_save_to_cpu
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def save(model: torch.nn.Module) -> tuple[dict[str, tuple[torch.Tensor, Any]], Any]:
        state, spec = original(model)
        return {name: (local.clone(), own) for name, (local, own) in state.items()}, spec

    fsdp_utils.fsdp2_sharded_save_to_cpu = save


_keep_saved_models_apart()
