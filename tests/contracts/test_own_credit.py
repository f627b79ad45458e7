"""A method's own credit in verl's step: verl's real methods, the queue's rows, no process."""

import math

import numpy as np
import pytest
import torch
from credit_trainer import Trainer, advantages, config, filled, score
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.utils import need_reference_policy

from recipe.hint.adapter.credit import with_spread_padding
from recipe.hint.adapter.models import ask_for_models
from recipe.hint.credit.base import Credit
from recipe.hint.methods.archer import Archer
from recipe.hint.methods.base import Needs
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.luffy import Luffy
from recipe.hint.methods.sft import Sft


def test_each_token_gets_its_turns_advantage_and_the_kl_that_is_still_to_come(monkeypatch):
    method = score(alpha=1.0, beta1=0.5)
    queue, batch = filled(monkeypatch, method, [{0: [0, 1], 1: [1, 1]}], k1=0.2)
    metrics = {}
    Trainer(method, prompts=1, mini=1)._compute_advantage(batch, metrics)
    # Turn 1: rewards 0, 1, so -1 and 1. Turn 2: 1 + (1 - 0) = 2 and 1, so 1 and -1. A token loses
    # 0.5 x 0.2 for itself and for each one after it; the rows have 2, 3, 3 and 3 tokens.
    assert advantages(queue, batch.keys) == [
        pytest.approx([-1.2, -1.1]),
        pytest.approx([0.7, 0.8, 0.9]),
        pytest.approx([0.7, 0.8, 0.9]),
        pytest.approx([-1.3, -1.2, -1.1]),
    ]
    assert metrics["credit/solver_t1/kl"] == pytest.approx((0.4 + 0.6) / 2)
    assert metrics["credit/solver_t2/reward"] == 1.5


def test_verls_metrics_of_the_critic_see_the_one_value_that_means_something(monkeypatch):
    """V of the state before each turn; what the untrained tokens behind it say is noise."""
    method = score(alpha=0.0, baseline="value")
    queue, batch = filled(monkeypatch, method, [{0: [1, 0], 1: [1, 0]}])
    for number, key in enumerate(batch.keys):
        length = len(queue.rows[key]["responses"])
        queue.rows[key]["values"] = torch.tensor([number / 4] + [100.0] * (length - 1))
    Trainer(method, prompts=1, mini=1)._compute_advantage(batch, {})
    values = [set(queue.rows[key]["values"].tolist()) for key in batch.keys]
    assert values == [{0.0}, {0.25}, {0.5}, {0.75}]


def test_a_conversation_that_was_dropped_teaches_the_critic_nothing(monkeypatch):
    """Its target is its own value: what its turns would have earned is unknown."""
    method = score(solver_credit="joint", baseline="value")
    queue, batch = filled(monkeypatch, method, [{0: [0, 0], 1: [2, 2]}])
    for number, key in enumerate(batch.keys):
        length = len(queue.rows[key]["responses"])
        queue.rows[key]["values"] = torch.tensor([number / 4] * length)
    Trainer(method, prompts=1, mini=1)._compute_advantage(batch, {})
    targets = [set(queue.rows[key]["returns"].tolist()) for key in batch.keys]
    assert targets == [{0.0}, {0.25}]


def test_padding_rows_have_no_advantage_and_no_part_in_a_baseline(monkeypatch):
    method = score(alpha=0.0, beta1=0.5)
    rights = [{0: [1, 0], 1: [1, 0]}]
    queue, batch = filled(monkeypatch, method, rights, k1=0.2)
    trainer = Trainer(method, prompts=1, mini=1)
    alone, before = advantages_of(trainer, queue, batch), dict(queue.rows)
    pad = {
        **before[batch.keys[0]],
        "uid": "pad",
        "response_mask": torch.zeros(1, dtype=torch.int64),
    }
    for name in ("responses", "old_log_probs", "ref_log_prob", "rm_scores", "rollout_log_probs"):
        pad[name] = torch.zeros(1, dtype=pad[name].dtype)
    queue.rows["padx_0_0"] = pad
    queue.tags = [*batch.tags, {**batch.tags[0], "is_padding": True}]
    padded = KVBatchMeta(partition_id="train", keys=[*batch.keys, "padx_0_0"], tags=queue.tags)
    assert advantages_of(trainer, queue, padded) == [*alone, [0.0]]


def advantages_of(trainer, queue, batch):
    trainer._compute_advantage(batch, {})
    return advantages(queue, batch.keys)


def test_rejected_tokens_leave_the_loss_and_their_kl_stays(monkeypatch):
    method = score(beta1=0.5)
    queue, batch = filled(monkeypatch, method, [{0: [0, 0], 1: [0, 0]}], k1=0.2)
    # A token is twice as likely under the trainer as under vLLM.
    for key in batch.keys:
        first = queue.rows[key]["rollout_log_probs"].clone()
        first[0] = -1.0 - 0.6931
        queue.rows[key]["rollout_log_probs"] = first
    correction = {"rollout_rs": "token_k1", "rollout_rs_threshold": "0.6_1.5"}
    metrics = {}
    trainer = Trainer(method, prompts=1, mini=1, correction=correction)
    trainer._compute_advantage(batch, metrics)
    assert queue.rows[batch.keys[0]]["response_mask"].tolist() == [0, 1]
    assert any(name.startswith("rollout_corr/") for name in metrics)
    assert advantages(queue, batch.keys)[0] == pytest.approx([-0.2, -0.1])


class Learner:
    """Keeps what it is given to learn from; judges everything to be worth 0."""

    def __init__(self):
        self.learnt = []

    def learn(self, transitions, step):
        self.learnt += transitions
        return {"replay": float(len(self.learnt))}

    def heads_of(self, transitions):
        return np.zeros((len(transitions), 4))


@pytest.mark.parametrize("rights, num_learnt", [(2, 0), (1, 4)])
def test_an_utterance_critic_learns_nothing_from_conversations_that_were_dropped(
    monkeypatch, rights, num_learnt
):
    """Whatever the last turns would have earned, a reward of 0 would be made up."""
    method = Archer()
    queue, batch = filled(monkeypatch, method, [{0: [0, 0], 1: [rights, rights]}])
    trainer = Trainer(method, prompts=1, mini=1)
    trainer._learner, metrics = Learner(), {}
    trainer._compute_values(batch, metrics)
    assert len(trainer._learner.learnt) == num_learnt
    assert metrics == ({"critic/replay": 4.0} if num_learnt else {})
    assert set(trainer._critic_heads) == set(batch.keys) and len(batch.keys) == 4


class LogProbs:
    """The workers: every token of row i has the log-probability -0.1 (i + 1) and the entropy 0.5.

    A sequence's numbers begin with those of its prompt, as the worker gives them.
    """

    def __init__(self, queue):
        self.queue = queue

    def compute_log_prob(self, batch):
        for number, key in enumerate(batch.keys):
            row = self.queue.rows[key]
            length = len(row["input_ids"])
            row["log_probs"] = torch.full((length,), -0.1 * (number + 1))
            row["entropy"] = torch.full((length,), 0.5)
        return batch


def after_log_probs(monkeypatch, method, *rights):
    queue, batch = filled(monkeypatch, method, [{0: right} for right in rights])
    # What the asynchronous modes have counted before.
    metrics = {"training/rollout_failure/evicted_samples": 2}
    trainer = Trainer(method, prompts=1, mini=1)
    trainer.actor_rollout_wg = LogProbs(queue)
    batch.extra_info = {}
    trainer._compute_old_log_prob(batch, metrics)
    return trainer, queue, batch, metrics


def test_what_was_not_sampled_has_no_part_in_the_comparison_with_vllm(monkeypatch):
    _, queue, batch, metrics = after_log_probs(monkeypatch, Luffy(), [0, 0])
    assert [tag.get("is_not_compared", False) for tag in batch.tags] == [False, False, True]
    # Two rows of 2 and 3 tokens, sampled with exp(-1): mean of |exp(-0.1) - exp(-1)| and
    # |exp(-0.2) - exp(-1)|. The third, exp(-0.3) for itself, is not among them.
    gaps = [*[math.exp(-0.1)] * 2, *[math.exp(-0.2)] * 3]
    mean = sum(each - math.exp(-1) for each in gaps) / 5
    assert metrics["training/rollout_probs_diff_mean"] == pytest.approx(mean)
    last = queue.rows[batch.keys[2]]
    assert last["rollout_log_probs"].tolist() == last["old_log_probs"].tolist()
    assert queue.rows[batch.keys[0]]["rollout_log_probs"].tolist() == [-1.0, -1.0]


def test_rollout_correction_leaves_what_was_not_sampled_as_it_is(monkeypatch):
    trainer, queue, batch, _ = after_log_probs(monkeypatch, Luffy(), [0, 0])
    trainer.config.algorithm.rollout_correction = {"rollout_is": "token"}
    trainer._compute_advantage(batch, {})
    weights = [queue.rows[key]["rollout_is_weights"].tolist() for key in batch.keys]
    assert weights[2] == [1.0] * 4
    # exp(-0.1 + 1) = 2.46 is cut at 2.
    assert weights[0] == [2.0, 2.0]


def test_where_nothing_was_sampled_there_is_nothing_to_compare(monkeypatch):
    _, queue, batch, metrics = after_log_probs(monkeypatch, Sft(), [0, 0], [0, 0])
    assert len(batch.keys) == 2
    assert [name for name in metrics if name.startswith("training/")] == [
        "training/rollout_failure/evicted_samples"
    ]
    assert metrics["actor/entropy"] == pytest.approx(0.5)


def test_each_token_of_a_solution_has_its_shaped_advantage(monkeypatch):
    trainer, queue, batch, _ = after_log_probs(monkeypatch, Luffy(), [0, 0])
    metrics = {}
    trainer._compute_advantage(batch, metrics)
    # Rewards 0, 0, 1: mean 1/3, deviation 1/sqrt(3). p = exp(-0.3), gamma p / (p + gamma)^2.
    p = math.exp(-0.3)
    weight = 0.1 * p / (p + 0.1) ** 2
    assert advantages(queue, batch.keys)[2] == pytest.approx([2 / 3**0.5 * weight] * 4, abs=1e-5)
    assert advantages(queue, batch.keys)[0] == pytest.approx([-(3**-0.5)] * 2, abs=1e-5)
    assert metrics["credit/reference_t1/rows"] == 1


class ByEntropy(Credit):
    """Each row has the advantage 0.1, each token its entropy as its weight."""

    def advantages(self, rows):
        return np.full(len(rows), 0.1)

    def token_weights(self, rows, tokens):
        return tokens.entropies_NT


def test_the_entropies_reach_a_method_that_reads_them(monkeypatch):
    method = Grpo()
    method.credit, method.needs = ByEntropy(), Needs(log_probs=True)
    trainer, queue, batch, _ = after_log_probs(monkeypatch, method, [1, 1])
    trainer._compute_advantage(batch, {})
    # 0.1 x 0.5 for each token.
    assert advantages(queue, batch.keys)[0] == pytest.approx([0.05, 0.05])


@pytest.mark.parametrize(
    ("num_real", "size", "num_processes", "num_updates", "real_of_each"),
    [
        # 15 updates of 5: without it the last two would have 2 and 0.
        (67, 75, 1, 15, [4] * 8 + [5] * 7),
        (33, 40, 4, 2, [16, 17]),
        (40, 40, 8, 1, [40]),
        (56, 64, 8, 4, [14] * 4),
        (120, 128, 8, 2, [60, 60]),
        (8, 32, 8, 4, [2] * 4),
    ],
)
def test_the_padding_is_spread_over_the_updates(
    num_real, size, num_processes, num_updates, real_of_each
):
    is_padding = [row >= num_real for row in range(size)]
    order = with_spread_padding(is_padding, num_processes, num_updates)
    assert sorted(order) == list(range(size))
    per_process, per_update = size // num_processes, size // num_processes // num_updates
    counts = [0] * num_updates
    for process in range(num_processes):
        own = order[process * per_process : (process + 1) * per_process]
        # Each process keeps its rows, the real ones in their order.
        assert sorted(own) == list(range(process * per_process, (process + 1) * per_process))
        real = [row for row in own if not is_padding[row]]
        assert real == sorted(real)
        for update in range(num_updates):
            rows = own[update * per_update : (update + 1) * per_update]
            counts[update] += sum(not is_padding[row] for row in rows)
    assert sorted(counts) == sorted(real_of_each)


@pytest.mark.parametrize(
    ("method", "is_there"),
    [(score(), True), (score(beta1=0.0, beta2=0.0), False), (Grpo(), False)],
)
def test_verl_builds_the_reference_policy_where_a_coefficient_is_above_zero(method, is_there):
    settings = config(2, 2, None)
    ask_for_models(settings, method)
    assert need_reference_policy(settings) is is_there
