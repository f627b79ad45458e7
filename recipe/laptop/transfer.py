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
import itertools
import pickle
from collections.abc import AsyncIterator, Iterable
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
# For another member; hint.watchdog.sync_s is meant to be shorter, and names the phase.
_LIMIT = timedelta(hours=1)


@CheckpointEngineRegistry.register(BACKEND)  # pyright: ignore[reportAttributeAccessIssue]
class GlooCheckpointEngine(CheckpointEngine):
    """One sender, trainer rank 0, and every rollout worker; the group lives for one transfer.

    Weights are broadcast one after the other; their names and shapes go through the store.
    """

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self._is_master = is_master
        self._rank = _NOT_A_MEMBER
        self._store: Any = None  # TCPStore, which stores bytes though its stub says text
        self._group: Any = None  # ProcessGroupGloo, whose stub lacks broadcast

    # The base class speaks of dictionaries, but only hands on what `prepare` returns.
    def prepare(self) -> tuple[str, int] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Open the store on the sender's machine, at a free port; return both."""
        if not self._is_master:
            return None
        host = ray.util.get_node_ip_address().strip("[]")
        self._store = TCPStore(host, 0, is_master=True, timeout=_LIMIT, wait_for_workers=False)
        return host, self._store.port

    @classmethod
    def build_topology(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[Any]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Return arguments of :meth:`init_process_group`: a list each, one value per process."""

        def of(ranks: list[int]) -> dict[str, list[Any]]:
            same = {"world_size": 1 + rollout_world_size, "meeting": metadata[0]}
            return {"rank": ranks} | {name: [each] * len(ranks) for name, each in same.items()}

        trainers = [0] + [_NOT_A_MEMBER] * (actor_wg_world_size - 1)
        return of(trainers), of([*range(1, 1 + rollout_world_size)])

    def init_process_group(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, rank: int, world_size: int, meeting: tuple[str, int]
    ) -> None:
        """Join the transfer; returns when every member has."""
        self._rank = rank
        if rank == _NOT_A_MEMBER:
            return
        if self._store is None:
            self._store = TCPStore(*meeting, is_master=False, timeout=_LIMIT)
        store = PrefixStore("group", self._store)
        self._group = ProcessGroupGloo(store, rank, world_size, timeout=_LIMIT)

    def finalize(self) -> None:
        """Leave the transfer: replicas may come and go before the next one."""
        self._group = self._store = None

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> dict[str, float]:
        """Send every weight once.

        All trainer ranks iterate: each step of the iteration gathers a weight from all of them.
        """
        number = 0
        async for name, weight in ensure_async_iterator(weights):
            if self._rank != _NOT_A_MEMBER:
                data = weight.detach().cpu().contiguous()
                self._store.set(str(number), pickle.dumps((name, data.shape, data.dtype)))
                await asyncio.to_thread(self._broadcast, data)
                number += 1
        if self._rank != _NOT_A_MEMBER:
            self._store.set(str(number), pickle.dumps(None))
        return {}

    async def receive_weights(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Yield names and tensors in the order in which they are sent."""
        for number in itertools.count():
            told = pickle.loads(await asyncio.to_thread(self._store.get, str(number)))
            if told is None:
                return
            name, shape, dtype = told
            weight = torch.empty(shape, dtype=dtype)
            await asyncio.to_thread(self._broadcast, weight)
            yield name, weight

    def _broadcast(self, weight: torch.Tensor) -> None:
        self._group.broadcast(weight.reshape(-1).view(torch.uint8), 0).wait()


_saved = fsdp_utils.fsdp2_sharded_save_to_cpu


@functools.wraps(_saved)
def _save_apart(model: torch.nn.Module) -> tuple[dict[str, tuple[torch.Tensor, Any]], Any]:
    """Make verl's copy of the sampling weights a copy on the CPU too.

    verl saves with ``.cpu()`` the weights that the rollouts of several updates were sampled from;
    on the CPU these are the live weights, and every later update would count as on-policy.
    """
    state, spec = _saved(model)
    return {name: (local.clone(), own) for name, (local, own) in state.items()}, spec


fsdp_utils.fsdp2_sharded_save_to_cpu = _save_apart
