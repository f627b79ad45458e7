"""Formulas of the turn methods, worked out by hand on a few numbers."""

import numpy as np
import pytest
import torch
from credit_rows import row
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import credit as runtime_credit
from recipe.hint.credit.archer import UtteranceCriticSettings, soft_update
from recipe.hint.credit.baselines import grpo_advantages
from recipe.hint.credit.dialogue import GUIDE_TURN, PARENT_TURN
from recipe.hint.credit.rows import DROPPED
from recipe.hint.methods.archer import Archer, ArcherSettings
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.methods.score_guided import ScoreGuided, ScoreGuidedSettings
from recipe.run.errors import ConfigError


@pytest.mark.parametrize("wrap", [np.array, torch.tensor])
def test_the_slow_target_takes_over_a_tenth(wrap):
    # (1 - 0.1) * 2 + 0.1 * 12 = 3, and (1 - 0.1) * 0 + 0.1 * -10 = -1
    moved = soft_update(wrap([2.0, 0.0]), wrap([12.0, -10.0]), 0.1)
    assert moved.tolist() == pytest.approx([3.0, -1.0])


def test_each_setting_of_the_critic_comes_from_the_setting_of_its_name():
    numbers = {"gamma": 0.9, "tau": 0.2, "updates": 3, "batch_size": 5, "capacity": 7}
    settings = ArcherSettings(**numbers, expectile=0.6)
    expected = UtteranceCriticSettings(**numbers, expectile=0.6)
    assert Archer(settings=settings).needs.utterance_critic == expected


def test_lite_regresses_on_its_lambda_returns():
    rows = [row(0.0, turn=0, value=0.5), row(1.0, turn=1, value=0.8)]
    lite = Archer(settings=ArcherSettings(variant="lite", gamma=0.9, lam=0.5))
    # The last: 1 - 0.8 = 0.2. The first: 0.9 * 0.8 - 0.5 + 0.9 * 0.5 * 0.2 = 0.31.
    assert lite.credit.advantages(rows).tolist() == pytest.approx([0.31, 0.2])
    assert lite.credit.value_targets(rows).tolist() == pytest.approx([0.81, 1.0])


def test_a_feedback_earns_the_mean_value_of_the_states_that_it_leads_to():
    guide = row(0.5, role="guide", turn=1, value=0.0, facts={GUIDE_TURN: 0.0})
    after = [row(0.0, turn=2, value=each, facts={PARENT_TURN: 0.0}) for each in (0.2, 0.8)]
    other = row(0.0, turn=2, value=9.0, facts={PARENT_TURN: 1.0})
    mlmt = Mlmt(settings=MlmtSettings(value_bonus=0.1, refinements=2))
    [found, *rest] = mlmt.credit._with_bonus([guide, *after, other])
    assert found.reward == pytest.approx(0.5 + 0.1 * (0.2 + 0.8) / 2)
    assert rest == [*after, other]


def nested(*rows):
    return torch.nested.as_nested_tensor([torch.tensor(each) for each in rows], layout=torch.jagged)


def test_columns_of_real_rows_leave_the_padding_between_them_at_0(monkeypatch):
    written = {}
    monkeypatch.setattr(runtime_credit.tq, "kv_batch_put", lambda **given: written.update(given))
    mask = nested([1.0, 1.0], [1.0], [1.0, 1.0, 1.0])
    batch = type("Batch", (), {"keys": ["a", "b", "c"], "partition_id": "train"})()
    batch.__class__.__len__ = lambda self: 3
    real = [0, 2]  # the row between them is padding
    own = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    runtime_credit._write_columns(batch, mask, real, advantages=own)
    column = written["fields"]["advantages"].unbind()
    assert [each.tolist() for each in column] == [[1.0, 2.0], [0.0], [3.0, 4.0, 5.0]]


def test_a_row_has_the_value_of_its_first_token_and_its_own_place():
    facts = [vars_of(row(float(number), session=number)) for number in range(3)]
    data = TensorDict({"values": nested([0.1, 9.0], [0.2], [0.3, 9.0, 9.0])}, batch_size=3)
    extra = [{runtime_credit.CREDIT_FIELD: each} for each in facts]
    tu.assign_non_tensor_stack(data, "extra_fields", extra)
    found = runtime_credit._credit_rows(data, [0, 2])
    assert [each.session for each in found] == [0, 2]
    assert [each.value for each in found] == pytest.approx([0.1, 0.3])


def vars_of(credit_row):
    return {name: getattr(credit_row, name) for name in credit_row.__dataclass_fields__}


def test_a_dropped_row_teaches_the_critic_nothing():
    rows = [row(1.0, value=0.3), row(1.0, value=0.4, facts={DROPPED: 1.0})]
    assert runtime_credit._critic_targets(rows, np.array([1.0, 1.0])).tolist() == [1.0, 0.4]


def test_limits_of_stages_and_phases_are_included():
    Score(settings=ScoreSettings(stage1_steps=10)).check_steps(10)
    Mlmt(settings=MlmtSettings(stage1_steps=2, t_low=2, t_high=1)).check_steps(9)
    with pytest.raises(ConfigError, match="stage1_steps"):
        Score(settings=ScoreSettings(stage1_steps=11)).check_steps(10)


def test_the_waiting_role_is_shown_to_the_critic_and_no_reference_serves_nobody():
    phases = {"t_low": 1, "t_high": 1, "value_bonus": 0.5}
    assert Mlmt(settings=MlmtSettings(**phases)).needs.critic_rows
    frozen = ScoreGuidedSettings(stage1_steps=0, train_solver=False, guide_kl_coef=0.0)
    assert not ScoreGuided(settings=frozen).needs.reference


def test_archer_discounts_a_turn_by_default():
    assert ArcherSettings().gamma == 0.95


def test_a_row_alone_in_its_group_keeps_its_raw_reward():
    rows = [row(1.0, group="a"), row(1.0, group="b"), row(0.0, group="b")]
    assert grpo_advantages(rows, by_std=False).tolist() == [1.0, 0.5, -0.5]
