"""Prompts that failed: which runs go on without them, and which end (adapter/sampling_guard.py)."""

import pytest
import transfer_queue as tq
from guarded_buffer import Queue, guarded, sample
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from recipe.run.errors import HintError

BOTH = pytest.mark.parametrize("buffer_class", [ReplayBuffer, ReplayBufferAsync])


@BOTH
def test_a_failure_that_nothing_can_follow_ends_the_wait_with_its_reason(buffer_class, monkeypatch):
    queue = Queue(monkeypatch)
    queue.prompt("a", "failure", is_fatal=True, error="problem 7: EngineDeadError: gone")
    queue.prompt("b", "pending")
    with pytest.raises(HintError, match="cannot go on: problem 7: EngineDeadError: gone"):
        sample(guarded(buffer_class))
    assert queue.polls == 1


def failing_queue(monkeypatch, *, finished, failing):
    """Prompts of a batch that have settled, and replacements that are finished at once."""
    queue = Queue(monkeypatch, poll_s=0.0)
    for number in range(finished):
        queue.prompt(f"good{number}", "finished")
        queue.tags[f"good{number}_0_0"] = {}
    for number in range(failing):
        queue.prompt(f"bad{number}", "failure", error=f"problem {number}: KeyError: 'x'")

    def refill(count):
        for number in range(count):
            queue.prompt(f"new{number}", "finished")
            queue.tags[f"new{number}_0_0"] = {}

    return queue, refill


@BOTH
def test_a_run_goes_on_while_no_more_than_half_of_its_batch_fails(buffer_class, monkeypatch):
    _, refill = failing_queue(monkeypatch, finished=4, failing=4)
    said = []
    buffer = guarded(buffer_class, said=said, refill_fn=refill)
    batch, _ = sample(buffer, count=8)
    assert len(said) == 4
    # Replaced in the asynchronous modes; the synchronous batch is smaller.
    assert len(batch.keys) == (8 if buffer_class is ReplayBufferAsync else 4)


@BOTH
def test_a_run_ends_when_more_than_half_of_its_batch_fails(buffer_class, monkeypatch):
    _, refill = failing_queue(monkeypatch, finished=3, failing=5)
    buffer = guarded(buffer_class, refill_fn=refill)
    with pytest.raises(HintError, match=r"5 prompts failed at step 1, .* of 8; .*problem 4: Key"):
        sample(buffer, count=8)


def validate(buffer_class, monkeypatch, *statuses):
    """Sample a validation whose prompts have ended like this; return what was said."""
    tags = {
        f"u{number}": {"is_prompt": True, "status": status, "global_steps": 1, "error": "odd"}
        for number, status in enumerate(statuses)
    }
    tags |= {f"{uid}_0_0": {} for uid, tag in tags.items() if tag["status"] == "finished"}
    monkeypatch.setattr(tq, "kv_list", lambda partition_id=None: {"val": tags})
    monkeypatch.setattr(tq, "kv_clear", lambda keys, partition_id: None)
    buffer = guarded(buffer_class, batch_size=128, said=(said := []))
    buffer.sample(global_steps=1, partition_id="val", batch_size=len(statuses))
    return said


@BOTH
def test_failed_prompts_of_a_validation_are_left_out_of_it(buffer_class, monkeypatch):
    said = validate(buffer_class, monkeypatch, "finished", "finished", "failure")
    assert said == ["  failed at step 1: odd"]


@BOTH
def test_a_validation_ends_where_most_of_its_own_prompts_fail(buffer_class, monkeypatch):
    """2 of 3, whatever the training's batch is."""
    with pytest.raises(HintError, match="2 prompts failed at step 1, more than half of .* of 3"):
        validate(buffer_class, monkeypatch, "finished", "failure", "failure")


def test_a_failure_counts_once_and_in_its_own_step(monkeypatch):
    """8 failures in all, one a step; a poll between steps tells of the next one already."""
    queue, refill = failing_queue(monkeypatch, finished=8, failing=1)
    buffer = guarded(ReplayBufferAsync, said=(said := []), refill_fn=refill)
    buffer._begin(1, "train")
    buffer._sync_metadata_from_transfer_queue()
    for step in range(2, 9):
        queue.prompt(f"bad{step}", "failure", error="odd")
        buffer.sample(global_steps=step, partition_id="train", batch_size=1)
    assert buffer.tallies["train"].failed == {"bad8"}
    assert len(said) == 8
