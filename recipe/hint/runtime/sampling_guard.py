"""verl's replay buffer, watched: it polls faster, and a rollout that cannot end is an error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import ray
import transfer_queue as tq
from ray.exceptions import RayActorError
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from recipe.hint.errors import HintError, StallError

POLL_S = 0.05
_PING_EVERY_S = 5.0


def guard(buffer: ReplayBuffer, limit_s: float) -> ReplayBuffer:
    """Give ``buffer`` the checks of :class:`_Guarded`, keeping its own class as the base.

    ``limit_s`` is the longest time that may pass without any prompt changing its status.
    """
    buffer.__class__ = type(f"Guarded{type(buffer).__name__}", (_Guarded, type(buffer)), {})
    buffer.poll_interval = POLL_S
    assert isinstance(buffer, _Guarded)
    buffer.limit_s = limit_s
    return buffer


# What a type checker sees as the base of the mixin: the class that has all it refines.
_Buffer = ReplayBufferAsync if TYPE_CHECKING else object


class _Guarded(_Buffer):
    """Mixin over verl's buffers; both call ``_sync_metadata_from_transfer_queue`` once a poll."""

    limit_s: float
    workers: tuple[Any, ...] = ()
    _last_progress: tuple[Any, float] | None = None
    _pings: tuple[Any, ...] = ()
    _pinged_at = 0.0
    _failed_in_a_row: frozenset[str] = frozenset()

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        """Sample as verl does, with the clock of progress set anew."""
        self._last_progress = None
        return super().sample(*args, **kwargs)

    def wait_for_sampleable(self, *args: Any, **kwargs: Any) -> Any:
        """Wait as verl does, with the clock set anew; `separate_async` calls it by itself."""
        self._last_progress = None
        return super().wait_for_sampleable(*args, **kwargs)

    def _sync_metadata_from_transfer_queue(self) -> None:
        super()._sync_metadata_from_transfer_queue()
        for partition, uids in self.failure_keys.items():
            is_hopeless = self._is_hopeless(partition, uids)
            if uids:
                _raise_if_fatal(partition, uids, is_hopeless)
        self._raise_if_a_worker_died()
        counts = tuple(
            sum(map(len, keys.values()))
            for keys in (
                self.pending_keys,
                self.running_keys,
                self.finished_keys,
                self.failure_keys,
            )
        )
        now = time.monotonic()
        if self._last_progress is None or self._last_progress[0] != counts:
            self._last_progress = (counts, now)
        elif now - self._last_progress[1] > self.limit_s:
            pending, running, finished, failed = counts
            raise StallError(
                f"the rollout made no progress for {self.limit_s:g} s (hint.watchdog.rollout_s for "
                f"each request that one prompt may need): {pending} prompts not started by the "
                f"agent-loop workers, {running} running, {finished} finished, {failed} failed"
            )

    def _is_hopeless(self, partition: str, failed: set[str]) -> bool:
        """Return whether nothing of a whole batch could be generated.

        The asynchronous buffer replaces a failed prompt by another one as soon as it sees it, so
        there it is as many failures as a batch has prompts, with no success between them.
        """
        if not isinstance(self, ReplayBufferAsync) or partition == "val":
            rest = (self.pending_keys, self.running_keys, self.finished_keys)
            return not any(keys[partition] for keys in rest)
        before = () if self.finished_keys[partition] else self._failed_in_a_row
        self._failed_in_a_row = frozenset(failed).union(before)
        return len(self._failed_in_a_row) >= (self.train_batch_size or 1)

    def _raise_if_a_worker_died(self) -> None:
        """Ask the agent-loop workers now and then; a dead one would leave its prompts running."""
        now = time.monotonic()
        if not self.workers or now - self._pinged_at < _PING_EVERY_S:
            return
        for number, ping in enumerate(self._pings):
            try:
                if ray.wait([ping], timeout=0)[0]:
                    ray.get(ping)
            except RayActorError as error:
                raise HintError(f"agent-loop worker {number} died: {error}") from error
        self._pings = tuple(worker.ping.remote() for worker in self.workers)
        self._pinged_at = now


def _raise_if_fatal(partition: str, uids: set[str], is_hopeless: bool) -> None:
    """Raise if nothing can be generated any more, or nothing of a whole batch could be."""
    tags = (tq.kv_list(partition) or {}).get(partition, {})
    for uid in uids:
        tag = tags.get(uid, {})
        if tag.get("is_fatal") or is_hopeless:
            raise HintError(f"the rollout cannot go on: {tag.get('error', 'unknown error')}")
