"""What reaches the queue when the rollouts of one group have different prompts, or no signal."""

import asyncio
import dataclasses
import itertools

import numpy as np
import pytest
import torch
import transfer_queue as tq
from fakes import Numbered, run
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import store
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.scaf import Scaf

PROMPT = {"uid": "uid", "global_steps": 60, "problem": "x", "hint_level_1": ["a"], "index": 1}


class Queue:
    """TransferQueue as its callers see it: each put takes a turn of the event loop.

    Rows of the uids in ``refused`` fail their whole put.
    """

    def __init__(self):
        self.puts = []
        self.marks = []
        self.refused = set()
        self.cleared = []

    async def __call__(self, keys, partition_id, tags, fields=None):
        await asyncio.sleep(0.001)
        if fields is None:
            self.marks += [
                (key, partition_id, tag["status"]) for key, tag in zip(keys, tags, strict=True)
            ]
        elif {key.split("_")[0] for key in keys} & self.refused:
            raise OSError("no room")
        else:
            self.puts.append((keys, fields, tags))

    async def clear(self, keys, partition_id):
        self.cleared.append((keys, partition_id))
        raise OSError("the queue does not answer")  # what is raised is the put's error


def rows_in(columns):
    """The rows of a write, each as a dictionary."""
    size = columns.batch_size[0]
    return [
        {name: tu.unwrap_non_tensor_data(columns[name][row]) for name in columns.keys()}
        for row in range(size)
    ]


@pytest.fixture
def queue(monkeypatch):
    queue = Queue()
    monkeypatch.setattr(tq, "async_kv_batch_put", queue)
    monkeypatch.setattr(tq, "async_kv_clear", queue.clear)
    return queue


@pytest.fixture
def published(queue):
    """Publishes an outcome and gives its rows, as (field, tag)."""

    def publish(outcome):
        asyncio.run(store.Publisher().publish(outcome, PROMPT, "train"))
        [(keys, fields, tags)] = queue.puts
        assert keys == [f"uid_{session}_0" for session in range(len(keys))]
        return list(zip(rows_in(fields), tags, strict=True))

    return publish


def mixed():
    outcomes = {0: [0, 0, 0, 0], 1: [0] * 4, 2: [1] * 4}
    return run(Scaf(max_level=3), outcomes, step=60, source=Numbered(12))


def test_rows_of_one_group_carry_the_prompt_each_was_sampled_from(published):
    rows = published(mixed())
    prompts = ["".join(map(chr, field["prompts"].tolist())) for field, _ in rows]
    bare = "answer in a boxWhat is 1+1?"
    assert prompts == [bare] * 3 + [f"{bare}\nHere is a hint to help you:\nhint 2"]
    for (field, tag), prompt in zip(rows, prompts, strict=True):
        assert field["input_ids"].tolist()[: len(prompt)] == [ord(char) for char in prompt]
        assert field["input_ids"].tolist()[len(prompt) :] == field["responses"].tolist()
        assert (tag["prompt_len"], tag["seq_len"]) == (len(prompt), len(field["input_ids"]))
        assert len(field["position_ids"]) == tag["seq_len"]


def test_a_row_trains_with_the_method_s_reward_and_reports_its_accuracy(published):
    form = "<think>a</think><answer>b</answer>"
    rows = published(run(Ghpo(max_level=3), {0: [0, 1]}, texts={0: form}))
    assert [float(field["rm_scores"].sum()) for field, _ in rows] == [0.5, 1.5]
    accuracies = [field["extra_fields"]["reward_extra_info"]["acc"] for field, _ in rows]
    assert accuracies == [0.0, 1.0]


def test_a_dropped_group_has_equal_rewards_and_one_token_a_row_in_the_loss(published):
    method = Ghpo(max_level=3, settings=GhpoSettings(on_all_failed="drop", cold_start_steps=0))
    outcome = run(method, dict.fromkeys(range(4), [0, 0]), source=Numbered(3))
    assert outcome.record.is_dropped
    for field, _ in published(outcome):
        assert field["rm_scores"].tolist() == [0.0, 0.0, 0.0]
        assert field["response_mask"].tolist() == [0, 0, 1]
        assert field["loss_mask"].tolist() == [0, 0, 1]


@pytest.mark.parametrize("reward", [1.3, 0.3, 0.8, 0.9, 0.1, -0.7, 1.0, 0.0])
def test_equal_rewards_have_no_gradient_whatever_their_float32_mean_is(reward):
    """Eight of 1.3: the mean that verl takes is 1.3000001, and each advantage would be -0.1."""
    [one, *_] = mixed().rows
    row = dataclasses.replace(one, credit=dataclasses.replace(one.credit, reward=reward))
    scores = store._tensors(row, one.turn.response)["rm_scores"]
    assert scores.sum().item() == pytest.approx(reward, rel=2e-5)
    for count in (2, 3, 5, 8, 12, 100):
        scores_NT = scores.expand(count, -1)
        uids = np.array([0] * count, dtype=object)
        found, _ = compute_grpo_outcome_advantage(scores_NT, torch.ones_like(scores_NT), uids)
        assert found.abs().max() == 0.0


def visit_of(uid):
    """The outcome of one visit, and its prompt."""
    outcome = mixed()
    record = dataclasses.replace(outcome.record, uid=uid)
    return dataclasses.replace(outcome, record=record), {**PROMPT, "uid": uid}


def publish_all(visits, partitions=()):
    """Publishes visits that end at once; gives what each raised."""
    visits = list(visits)  # playing them runs a loop

    async def run_all():
        publisher = store.Publisher()
        pairs = itertools.zip_longest(visits, partitions, fillvalue="train")
        puts = [publisher.publish(*visit, partition) for visit, partition in pairs]
        return await asyncio.gather(*puts, return_exceptions=True)

    return asyncio.run(run_all())


def test_visits_that_end_together_share_a_put_of_at_most_16(queue):
    uids = [f"u{number}" for number in range(40)]
    assert publish_all(map(visit_of, uids)) == [None] * 40
    # 40 visits of 4 rows: 16 + 16 + 8.
    assert [len(keys) for keys, _, _ in queue.puts] == [64, 64, 32]
    keys, fields, tags = queue.puts[0]
    assert keys[:5] == ["u0_0_0", "u0_1_0", "u0_2_0", "u0_3_0", "u1_0_0"]
    assert list(fields["uid"][:5]) == ["u0"] * 4 + ["u1"]
    assert queue.marks == [(uid, "train", "finished") for uid in uids]


@pytest.mark.parametrize("is_other", ["partition", "columns"])
def test_a_put_never_mixes_partitions_or_columns(queue, is_other):
    # verl would take the columns of the first row for all.
    visits = [visit_of("a"), visit_of("b"), visit_of("c")]
    partitions = ["train", "val" if is_other == "partition" else "train", "train"]
    if is_other == "columns":
        visits[1][1]["topic"] = "sums"
    publish_all(visits, partitions)
    assert [keys[0::4] for keys, _, _ in queue.puts] == [["a_0_0", "c_0_0"], ["b_0_0"]]
    assert [uid for uid, _, _ in queue.marks] == ["a", "c", "b"]
    assert queue.marks[2][1] == partitions[1]


def test_a_visit_that_cannot_be_stored_fails_alone(queue):
    queue.refused = {"b"}
    results = publish_all(map(visit_of, "abc"))
    assert [str(result) for result in results] == ["None", "no room", "None"]
    # The queue has their names since the put began, and would hand them to the trainer.
    assert [f"b_{row}_0" for row in range(4)] in [keys for keys, _ in queue.cleared]
    assert queue.marks == [("a", "train", "finished"), ("c", "train", "finished")]


def test_a_write_that_is_cancelled_fails_its_own_prompt_and_no_other_waits_for_ever(
    queue, monkeypatch
):
    begun = []

    async def put(keys, **given):
        if "fields" in given and not begun:
            begun.append(keys)
            raise asyncio.CancelledError  # from beneath
        await queue(keys, **given)

    monkeypatch.setattr(tq, "async_kv_batch_put", put)
    results = publish_all(map(visit_of, "abc"))
    assert [type(each) for each in results] == [asyncio.CancelledError, type(None), type(None)]
    assert len(begun[0]) == 12
    assert [uid for uid, _, _ in queue.marks] == ["b", "c"]
