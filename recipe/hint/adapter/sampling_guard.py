"""Guard verl's replay buffer: order, limits and failures of the prompts that it waits for."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from recipe.hint.adapter.store import tags_of
from recipe.run.errors import HintError, StallError

POLL_S = 0.2  # verl's own is 2 s
_LONGEST_ERROR = 400  # characters


def guard(
    buffer: ReplayBuffer,
    limit_s: float,
    *,
    batch_size: int,
    max_filtered: int,
    say: Callable[[str], None],
    on_discard: Callable[[list[str], str], None],
) -> ReplayBuffer:
    """Give ``buffer`` the checks of :class:`_Guarded`, keeping its own class as the base.

    In ``limit_s`` some prompt must finish or fail. A training batch has ``batch_size`` prompts;
    ``algorithm.filter_groups`` may take ``max_filtered`` groups out of one step. ``say`` takes a
    line on each prompt that failed, ``on_discard`` the keys of the first rows of groups that are
    thrown away (too old, filtered, left over), and their partition, while they can be read.
    """
    buffer.__class__ = type(f"Guarded{type(buffer).__name__}", (_Guarded, type(buffer)), {})
    assert isinstance(buffer, _Guarded)
    buffer.limit_s, buffer.batch_size, buffer.max_filtered = limit_s, batch_size, max_filtered
    buffer.say, buffer.on_discard = say, on_discard
    buffer.tallies, buffer.reported = defaultdict(_Tally), defaultdict(set)
    buffer.sent = itertools.count()
    return buffer


@dataclass
class _Tally:
    """What became of the prompts of one partition during one step."""

    step: int = 0
    finished: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    num_filtered: int = 0


# What a type checker sees as the base of the mixin: the class that has all it refines.
_Buffer = ReplayBufferAsync if TYPE_CHECKING else object


class _Guarded(_Buffer):
    """Mixin over verl's buffers; both call ``_sync_metadata_from_transfer_queue`` once a poll."""

    limit_s: float
    batch_size: int
    max_filtered: int
    say: Callable[[str], None]
    on_discard: Callable[[list[str], str], None]
    tallies: dict[str, _Tally]
    reported: dict[str, set[str]]  # by partition, failed prompts that it still holds
    sent: itertools.count[int]
    _settled: frozenset[str] = frozenset()
    _progress_at: float | None = None

    # -- waits, each with a clock of its own ----------------------------------------------------

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        self._begin(global_steps, partition_id)
        return super().sample(global_steps, partition_id, batch_size)

    def wait_for_sampleable(self, global_steps: int, partition_id: str, target_count: int) -> Any:
        self._begin(global_steps, partition_id)
        return super().wait_for_sampleable(global_steps, partition_id, target_count)

    def get_sampleable_count(self, global_steps: int, partition_id: str) -> int:
        self._progress_at = None  # it does not wait: between waits no clock runs
        return super().get_sampleable_count(global_steps, partition_id)

    def _begin(self, step: int, partition: str) -> None:
        self._progress_at = None
        if self.tallies[partition].step != step:
            self.tallies[partition] = _Tally(step)

    def _sync_metadata_from_transfer_queue(self) -> None:
        super()._sync_metadata_from_transfer_queue()
        for partition in list(self.partitions):
            self._count(partition)
        settled = frozenset().union(*self.finished_keys.values(), *self.failure_keys.values())
        now = time.monotonic()
        if self._progress_at is None or settled - self._settled:
            self._progress_at = now
        elif now - self._progress_at > self.limit_s:
            statuses = (self.pending_keys, self.finished_keys, self.failure_keys)
            open_, finished, failed = (sum(map(len, each.values())) for each in statuses)
            raise StallError(
                f"no prompt finished or failed within hint.watchdog.progress_s={self.limit_s:g} s: "
                f"{open_} prompts are under way, {finished} finished, {failed} failed"
            )
        self._settled = settled

    def _wait_for_next_poll(self, partition_id: str, last_debug_time: float) -> float:
        # verl's own interval stays: its trainer takes a longer wait for idling.
        own, self.poll_interval = self.poll_interval, POLL_S
        try:
            return super()._wait_for_next_poll(partition_id, last_debug_time)
        finally:
            self.poll_interval = own

    # -- order: a repeated step adds up the same numbers in the same order ----------------------

    def in_order(self, step: int, uids: Iterable[str]) -> list[str]:
        """Return names for the prompts that are sent now, which sort after all that were sent.

        The queue of a checkpoint has the names, so a resumed run has the order.
        """
        return [f"{step:07d}-{next(self.sent):09d}-{uid}" for uid in uids]

    def _materialize_batch(
        self, partition_id: str, selected_prompt_uids: list[str], partition_snapshot: Any
    ) -> Any:
        def place(key: str) -> tuple[int | str, ...]:
            uid, *row = key.split("_")
            return uid, *map(int, row)

        ordered = {key: partition_snapshot[key] for key in sorted(partition_snapshot, key=place)}
        return super()._materialize_batch(partition_id, selected_prompt_uids, ordered)

    def _select_prompt_uids(
        self, partition_id: str, sampleable_keys: set[str], batch_size: int
    ) -> Any:
        in_order: Any = sorted(sampleable_keys)
        return super()._select_prompt_uids(partition_id, in_order, batch_size)

    # -- groups that do not train ---------------------------------------------------------------

    def _evict_terminal_groups(
        self, global_steps: int, partition_id: str, eviction_reasons: Any
    ) -> Any:
        evicted = super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)
        tally = self.tallies[partition_id]
        tally.num_filtered += evicted[2]
        if tally.num_filtered > self.max_filtered:
            raise HintError(
                f"algorithm.filter_groups discarded {tally.num_filtered} groups with equal rewards "
                f"at step {tally.step} before its batch was full; give other problems, a method "
                f"with hints, or a higher algorithm.filter_groups.max_num_gen_batches"
            )
        return evicted

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        keys = [f"{uid}_0_0" for uid in sorted(uids)]
        if keys := [key for key in keys if key in self.partitions[partition_id]]:
            self.on_discard(keys, partition_id)
        super()._clear_groups(partition_id, uids)

    def _count(self, partition: str) -> None:
        """Add what this poll saw; report prompts that have failed since the last one.

        Raises:
            HintError: If nothing can be generated any more, or most of a batch failed: of the
                prompts that settled during this step, more than half, and more than half as many as
                a batch has.
        """
        tally = self.tallies[partition]
        finished, failed = self.finished_keys[partition], self.failure_keys[partition]
        tally.finished |= finished
        new, self.reported[partition] = sorted(failed - self.reported[partition]), set(failed)
        if not new:
            return
        tally.failed.update(new)
        tags = tags_of(partition)
        error = ""
        for tag in (tags.get(uid, {}) for uid in new):
            error = " ".join(str(tag.get("error", "unknown error")).split())[:_LONGEST_ERROR]
            self.say(f"  failed at step {tally.step}: {error}")
            if tag.get("is_fatal"):
                raise HintError(f"the rollout cannot go on: {error}")
        batch = self.batch_size
        if partition == "val":  # all at once
            batch = len(self.pending_keys[partition] | finished | failed)
        if 2 * len(tally.failed) > max(batch, len(tally.failed | tally.finished)):
            raise HintError(
                f"the rollout cannot go on: {len(tally.failed)} prompts failed at step "
                f"{tally.step}, more than half of a batch of {batch}; the last one: {error}"
            )
