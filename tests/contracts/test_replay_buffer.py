"""verl's replay buffers, which adapter/sampling_guard.py watches while they poll."""

import pytest
import torch
import transfer_queue as tq
from guarded_buffer import LIMIT_S, Queue, guarded, made, sample, watched
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from recipe.hint.adapter.store import clean_restored_queue
from recipe.run.errors import HintError, StallError

BOTH = pytest.mark.parametrize("buffer_class", [ReplayBuffer, ReplayBufferAsync])


@BOTH
def test_both_buffers_read_the_statuses_once_a_poll_until_enough_are_finished(
    buffer_class, monkeypatch
):
    queue = Queue(monkeypatch, poll_s=0.0)
    queue.prompt("a", "pending")
    queue.tags["a_0_0"] = {"seq_len": 5}

    def finish_at_the_third():
        if queue.polls == 3:
            queue.prompt("a", "finished")

    queue.on_poll = finish_at_the_third
    batch, _ = sample(guarded(buffer_class))
    assert queue.polls == 3
    assert batch.keys == ["a_0_0"]
    assert "a" not in queue.tags  # the prompt's own key is cleared by verl


@BOTH
def test_no_progress_for_longer_than_the_limit_is_a_stall_that_counts_the_prompts(
    buffer_class, monkeypatch
):
    queue = Queue(monkeypatch)
    queue.prompt("a", "pending")
    queue.prompt("b", "pending")
    queue.prompt("c", "pending")
    # Polls at 4, 8, 12 and 16 s: the first sets the clock, 16 - 4 = 12 > 10.
    with pytest.raises(StallError, match=r"3 prompts are under way, 0 finished"):
        sample(guarded(buffer_class))
    assert queue.polls == 4


@BOTH
def test_every_prompt_that_finishes_is_progress(buffer_class, monkeypatch):
    queue = Queue(monkeypatch)
    for uid in "abcd":
        queue.prompt(uid, "pending")
        queue.tags[f"{uid}_0_0"] = {}

    def finish_one():
        done = queue.polls // 2  # one every second poll, every 8 s
        for uid in "abcd"[:done]:
            queue.prompt(uid, "finished")

    queue.on_poll = finish_one
    batch, _ = sample(guarded(buffer_class), count=4)
    assert len(batch.keys) == 4
    assert queue.now == 32.0  # three times the limit, and no stall


def test_a_look_after_a_long_update_is_no_stall(monkeypatch):
    """`separate_async` counts what can be sampled after its update, and does not wait for it."""
    queue = Queue(monkeypatch, poll_s=0.1)
    buffer = guarded(ReplayBufferAsync)
    queue.prompt("a", "finished")
    buffer.wait_for_sampleable(1, "train", 1)
    queue.now += 3 * LIMIT_S
    assert buffer.get_sampleable_count(1, "train") == 1


def test_a_stale_group_is_handed_on_before_verl_clears_it(monkeypatch):
    queue = Queue(monkeypatch, poll_s=0.0)
    for uid in ("old", "new"):
        queue.prompt(uid, "finished")
        queue.tags[f"{uid}_0_0"] = queue.tags[f"{uid}_1_0"] = {}
    queue.tags["new"]["global_steps"] = 5
    queue.prompt("bad", "failure", error="odd")
    buffer = ReplayBufferAsync(
        trainer_mode="separate_async",
        trainer_config=OmegaConf.create({}),
        max_off_policy_threshold=1,
        max_off_policy_strategy="drop",
        sampler_kwargs=OmegaConf.create({}),
        refill_fn=lambda count: None,
    )
    handed = []

    def on_discard(keys, partition):
        handed.append((keys, partition, all(key in queue.tags for key in keys)))

    watched(buffer, on_discard=on_discard)
    batch, metrics = buffer.sample(global_steps=5, partition_id="train", batch_size=1)
    assert handed == [(["old_0_0"], "train", True)]
    assert batch.keys == ["new_0_0", "new_1_0"]
    assert metrics["training/off_policy/evicted_samples"] == 1


def filtering(monkeypatch, rewards, *, max_filtered, buffer_class=ReplayBuffer, batch_size=1):
    """A buffer of finished groups with these rewards; each refill finishes the next at once."""
    queue = Queue(monkeypatch, poll_s=0.0)
    waiting = iter(rewards.items())

    def refill(count):
        for _, (uid, group) in zip(range(count), waiting, strict=False):
            queue.prompt(uid, "finished")
            for row, reward in enumerate(group):
                queue.tags[f"{uid}_{row}_0"] = {"reward": reward}

    def read(keys, partition_id, select_fields):
        assert select_fields == ["rm_scores"]
        return {"rm_scores": [torch.tensor([0.0, queue.tags[key]["reward"]]) for key in keys]}

    monkeypatch.setattr(tq, "kv_batch_get", read)
    refill(batch_size)
    sizes = (
        {"train_batch_size": batch_size, "gen_batch_size": 1}
        if buffer_class is ReplayBuffer
        else {}
    )
    buffer = made(buffer_class, refill_fn=refill, filter_groups_metric="reward", **sizes)
    handed = []

    def on_discard(keys, partition):
        handed.extend(key for key in keys if key in queue.tags)

    more = {"batch_size": batch_size, "max_filtered": max_filtered, "on_discard": on_discard}
    return watched(buffer, **more), handed


@BOTH
def test_groups_without_a_difference_are_handed_on_before_they_are_filtered(
    buffer_class, monkeypatch
):
    rewards = {"a": (0, 0), "b": (1, 1), "c": (0, 1)}
    buffer, handed = filtering(monkeypatch, rewards, max_filtered=2, buffer_class=buffer_class)
    batch, metrics = sample(buffer)
    assert batch.keys == ["c_0_0", "c_1_0"]
    assert handed == ["a_0_0", "b_0_0"]
    assert metrics["training/filter_groups/evicted_samples"] == 2


@BOTH
def test_a_filter_that_finds_nothing_ends_the_run_at_its_limit(buffer_class, monkeypatch):
    rewards = {f"p{number}": (0, 0) for number in range(20)}
    buffer, handed = filtering(monkeypatch, rewards, max_filtered=5, buffer_class=buffer_class)
    with pytest.raises(HintError, match=r"discarded 6 groups .* at step 1 .*max_num_gen_batches"):
        sample(buffer)
    assert len(handed) == 6


@BOTH
def test_a_batch_is_in_the_order_its_prompts_were_sent_in_also_those_of_a_restored_queue(
    buffer_class, monkeypatch
):
    queue = Queue(monkeypatch, poll_s=0.0)
    sent = guarded(buffer_class).in_order(9, ["d", "c"])  # by a run that was killed
    buffer = guarded(buffer_class)
    sent += [*buffer.in_order(10, ["b"]), *buffer.in_order(10, ["a"])]
    for uid in sorted(sent, key=lambda uid: uid[-1]):
        queue.prompt(uid, "finished")
        for row in (10, 2):
            queue.tags[f"{uid}_{row}_0"] = {}
    batch, _ = sample(buffer, count=4)
    names = [key.split("-")[2] for key in batch.keys]
    assert names == "d_2_0 d_10_0 c_2_0 c_10_0 b_2_0 b_10_0 a_2_0 a_10_0".split()


def test_a_resumed_run_does_not_end_for_the_failure_that_its_checkpoint_holds(monkeypatch):
    queue = Queue(monkeypatch)
    queue.prompt("a", "failure", error="the engine died", is_fatal=True)
    queue.prompt("b", "pending")
    with pytest.raises(HintError, match="the engine died"):
        guarded(ReplayBufferAsync)._sync_metadata_from_transfer_queue()
    clean_restored_queue()
    # verl sends both again.
    assert [tag["status"] for tag in queue.tags.values()] == ["pending", "pending"]
    guarded(ReplayBufferAsync)._sync_metadata_from_transfer_queue()


def test_a_resumed_run_drops_the_rows_that_its_checkpoint_was_trained_on(monkeypatch):
    queue = Queue(monkeypatch)
    queue.prompt("a", "finished")
    queue.prompt("b", "pending")
    kept = {"a", "b", "a_0_0", "a_1_0", "b_0_0"}
    # A prompt is taken out when its batch is made, its rows and the padding after the save.
    for key in (*kept - set("ab"), "c_0_0", "c_1_0", "pad7_0_0"):
        queue.tags[key] = {"status": "success"}
    clean_restored_queue()
    assert set(queue.tags) == kept
