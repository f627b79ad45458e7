"""What Scaf-GRPO samples and keeps, beyond the golden traces (test_all_traces)."""

import pytest
from fakes import Numbered, run

from recipe.hint.methods.scaf import Scaf, ScafSettings
from recipe.run.errors import ConfigError

WARM = 51  # the first step after the warm-up
FAILED = [0, 0, 0, 0]


def scaf(**settings):
    return Scaf(max_level=3, settings=ScafSettings(**settings))


def visit(outcomes, *, method=None, step=WARM, **more):
    return run(method or scaf(), outcomes, step=step, source=Numbered(12), **more)


def guided(solved_at, last=12):
    """A group that fails, and one guided answer per level, right from ``solved_at`` on."""
    return {0: FAILED} | {k: [int(k >= solved_at)] * 4 for k in range(1, last + 1)}


def test_three_tiers_of_four_increments_are_twelve_levels():
    assert scaf().max_level == 12
    assert scaf(increments=1).max_level == 3


@pytest.mark.parametrize("solved_at", [1, 5, 12])
def test_the_weakest_hint_that_works_replaces_exactly_one_failed_rollout(solved_at):
    outcome = visit(guided(solved_at))
    record = outcome.record
    assert record.levels == tuple(range(solved_at + 1))
    assert record.rows == ((0, 0), (0, 1), (0, 2), (solved_at, 0))
    assert record.accuracies == (0.0, 0.0, 0.0, 1.0)
    assert (record.first_row_level, record.highest_level) == (0, solved_at)
    assert record.has_signal
    assert record.on_policy


def test_unhinted_conditioning_trains_the_guided_rollout_under_the_bare_prompt():
    outcome = visit(guided(5), settings={"conditioning": "unhinted"})
    own, *_, injected = outcome.rows
    assert injected.prompt_ids_T == own.prompt_ids_T
    assert injected.turn.response.token_ids_T[0] == 5
    assert not outcome.record.on_policy


def test_one_answer_is_sampled_at_each_hint_by_default():
    record = visit(guided(3)).record
    assert [len(each.accuracies) for each in record.rounds] == [4, 1, 1, 1]


def test_of_several_guided_answers_the_first_right_one_is_taken():
    outcomes = {0: FAILED, 1: [0, 1, 1, 0]}
    record = visit(outcomes, method=scaf(rollouts=3)).record
    assert record.rounds[1].accuracies == (0.0, 1.0, 1.0)
    assert record.rows[-1] == (1, 1)


def test_there_is_no_guidance_while_the_run_warms_up():
    assert visit(guided(1), step=50).record.levels == (0,)
    assert visit(guided(1), step=51).record.levels == (0, 1)


def test_less_is_sampled_under_guidance_than_without():
    scaf(rollouts=3).check_run(group_size=4, use_kl_in_reward=True)
    with pytest.raises(ConfigError, match=r"hint\.scaf\.rollouts=4 must be below .*rollout\.n=4"):
        scaf(rollouts=4).check_run(group_size=4, use_kl_in_reward=False)
