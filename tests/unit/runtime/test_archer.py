"""What the critic of utterances is asked and taught, with workers that answer by a formula."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter.archer import UtteranceLearner, transitions_of
from recipe.hint.adapter.critic import CriticWorker, Heads, UtteranceCriticWorker, utterance_loss
from recipe.hint.credit.archer import Transition, UtteranceCriticSettings
from recipe.hint.credit.base import CreditRow


def later(value):
    return SimpleNamespace(get=lambda: value)


class FormulaWorkers:
    """Q is the first token of the utterance, V the length of the state; the doubles differ by 1."""

    def __init__(self):
        self.trained, self.sizes, self.taus = [], [], []

    def set_loss_fn(self, loss):
        self.expectile = loss.keywords["expectile"]

    def infer_target(self, rows):
        self.sizes.append(len(rows))
        heads = [
            torch.tensor([action[0], action[0] + 1, len(state), len(state) + 1.0])
            for state, action in zip(
                rows["prompts"].unbind(), rows["responses"].unbind(), strict=True
            )
        ]
        return later({"utterance": torch.nested.as_nested_tensor(heads, layout=torch.jagged)})

    infer_batch = infer_target

    def train_mini_batch(self, rows):
        self.trained.append(rows)
        metrics = {"q_loss": [1.0], "v_loss": [3.0], "grad_norm": [2.0]}
        return later(tu.get_tensordict({}, {"metrics": metrics}))

    def soft_update(self, tau):
        self.taus.append(tau)
        # Two processes: sqrt((1 + 0) / (4 + 12)) is 1/4 of the weights.
        return [(1.0, 4.0), (0.0, 12.0)]


def said(state, action, reward=0.0, after=()):
    return Transition(np.array(state), np.array(action), reward, np.array(after, int))


FIRST = said([1, 2], [5], 0.0, [1, 2, 5, 9])
LAST = said([1, 2, 5, 9], [7, 8], 1.0)


def learner(processes=1, **settings):
    workers = FormulaWorkers()
    workers.world_size = processes
    usual = {"gamma": 0.5, "tau": 0.1, "updates": 2, "batch_size": 8, "capacity": 100}
    asked = UtteranceCriticSettings(**usual | {"expectile": None} | settings)
    return workers, UtteranceLearner(asked, workers, seed=3)


def rows_of(batch):
    """(state, action, target of Q, target of V) of each row, the targets of the first double."""
    columns = (batch[name].unbind() for name in ("prompts", "responses"))
    targets = (batch[name][:, 0].tolist() for name in ("q_targets", "v_targets"))
    return [
        (tuple(s.tolist()), tuple(a.tolist()), q, v)
        for s, a, q, v in zip(*columns, *targets, strict=True)
    ]


def test_q_follows_the_reward_and_the_next_state_and_v_the_slow_q_of_this_step():
    workers, made = learner()
    told = made.learn([FIRST, LAST], step=1)
    assert len(workers.trained) == 2
    for batch in workers.trained:
        rows = rows_of(batch)
        assert len(rows) == 2 * 8
        for _, action, q, v in rows[:8]:
            # The first turn: 0 + 0.5 x V of the next state, its 4 tokens. The last one is done: 1.
            assert (q, np.isnan(v)) == ({(5,): 2.0, (7, 8): 1.0}[action], True)
        for _, action, q, v in rows[8:]:
            assert (np.isnan(q), v) == (True, float(action[0]))
    assert workers.taus == [0.1, 0.1]
    assert (told["q_loss"], told["v_loss"], told["target_lag"], told["replay"]) == (1, 3, 0.25, 2)


def test_with_an_expectile_v_learns_from_what_was_drawn():
    workers, made = learner(expectile=0.9)
    made.learn([said([1], [3], 0.5)], step=1)
    workers.trained.clear()
    made.learn([LAST], step=2)
    for batch in workers.trained:
        rows = rows_of(batch)
        assert [row[:2] for row in rows[:8]] == [row[:2] for row in rows[8:]]
    assert workers.expectile == 0.9


@pytest.mark.parametrize("asked", ["infer_target", "infer_batch"])
def test_a_critic_that_is_not_finite_ends_the_run_and_is_not_taken_for_one_without_a_target(asked):
    workers, made = learner()
    heads = torch.full((3, 4), float("nan"))
    answer = later({"utterance": torch.nested.as_nested_tensor(list(heads), layout=torch.jagged)})
    setattr(workers, asked, lambda rows: answer)
    with pytest.raises(
        ValueError, match=r"Q or V of an utterance is not finite.*critic\.optim\.lr"
    ):
        made.learn([FIRST, LAST], step=1)
        made.heads_of([FIRST, LAST])


def test_batches_are_filled_up_to_a_multiple_of_the_processes_and_the_fill_teaches_nothing():
    workers, made = learner(processes=3)
    made.learn([FIRST, LAST], step=1)
    judged = made.heads_of([FIRST, LAST])
    assert all(size % 3 == 0 for size in workers.sizes)
    for batch in workers.trained:
        assert len(batch) == 18
        assert batch["q_targets"][16:].isnan().all() and batch["v_targets"][16:].isnan().all()
    assert judged.tolist() == [[5, 6, 2, 3], [7, 8, 4, 5]]


def test_an_utterance_goes_on_to_the_prompt_of_the_next_turn():
    def row(session, turn, reward):
        return CreditRow("p", "u", "g", "solver", turn, session, reward)

    rows = [row(0, 1, 1.0), row(1, 0, 0.5), row(0, 0, 0.0)]
    prompts = [np.array(each) for each in ([1, 2, 3], [1], [1])]
    responses = [np.array(each) for each in ([4], [5], [2])]
    found = transitions_of(rows, prompts, responses)
    assert [each.is_done for each in found] == [True, True, False]
    assert found[2].next_state_T.tolist() == [1, 2, 3]
    assert [each.reward for each in found] == [1.0, 0.5, 0.0]
    kept = [ids_T for each in found for ids_T in (each.state_T, each.action_T)]
    assert all(ids_T.dtype == np.int32 and ids_T.base is None for ids_T in kept)  # no views


@pytest.mark.parametrize(("expectile", "expected"), [(0.5, 0.5 + 0.5 * 4), (0.9, 0.9 + 0.1 * 4)])
def test_the_loss_counts_errors_where_there_is_a_target_and_nowhere_else(expectile, expected):
    heads = torch.tensor([[1.0, 2.0, 7.0, 7.0], [7.0, 7.0, 0.0, 2.0]], requires_grad=True)
    nan = float("nan")
    data = {
        "q_targets": torch.tensor([[0.0, 4.0], [nan, nan]]),
        # Q is above V by 1 in the first double, and below it by 2 in the second.
        "v_targets": torch.tensor([[nan, nan], [1.0, 0.0]]),
        "dp_size": 1,
        "global_batch_size": 2,
    }
    loss, metrics = utterance_loss({"utterance": heads}, data, expectile=expectile)
    # Q: (1 + 4) / 2 over 2 rows; V: the weighted squares 1 and 4 over 2 rows.
    assert metrics["q_loss"].values == [pytest.approx(1.25)]
    assert metrics["v_loss"].values == [pytest.approx(expected / 2)]
    loss.backward()
    assert heads.grad[0, 2:].tolist() == heads.grad[1, :2].tolist() == [0.0, 0.0]
    assert heads.grad.isfinite().all()


def test_values_keep_their_differences_where_the_model_computes_in_bfloat16():
    """V = 0.75 and Q = 0.75 + 1/1024; near them bfloat16 has steps of 1/256."""
    heads, plain = Heads(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    weights = torch.tensor([[0.75, 0.0], [0.75, 1 / 1024]])
    hidden = torch.ones(1, 2)
    differences = []
    for layer in (heads, plain):
        layer.weight.data = weights.clone()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            v, q = layer(hidden)[0].float().tolist()
        differences.append(q - v)
    assert differences == [1 / 1024, 0.0]


def test_the_slow_target_follows_weights_in_bfloat16(monkeypatch):
    """0.9^100 = 2.7e-5 of a change of 1 % is left; in bfloat16 each step would round to nothing."""
    monkeypatch.setattr(CriticWorker, "reset", lambda self: None)
    weights = torch.linspace(0.5, 1.0, 64).bfloat16()
    worker = object.__new__(UtteranceCriticWorker)
    worker._shards = lambda: [weights]
    worker.reset()
    weights.mul_(1.01)
    lags = [lag for lag, _ in (worker.soft_update(0.1) for _ in range(100))]
    assert lags[-1] < 1e-8 * lags[0]
