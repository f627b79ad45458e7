"""The critic's workers: verl's engine and our losses, on rows of a few tokens without Ray."""

import pytest
from engines import run_process

from recipe.run.devices import has_gpu

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(has_gpu(), reason="the process has one CPU and no accelerator"),
]


@pytest.fixture(scope="module")
def seen():
    return run_process("critic_process.py")


def test_exchanging_the_responses_leaves_every_value_as_it_was(seen):
    found = seen["one_value_a_turn"]
    assert found["with other responses"] == found["before"]
    # The first and the third row have one prompt, so one state.
    assert found["before"][0] == found["before"][2] != found["before"][1]


def test_a_critic_begins_with_the_same_head_in_every_run(seen):
    equal = {name: first == second for name, (first, second) in seen["heads"].items()}
    # verl's own seeds nothing; the generator stood elsewhere at the second one.
    assert equal == {"TrainingWorker": False, "CriticWorker": True, "UtteranceCriticWorker": True}


def test_the_critic_learns_what_a_turn_earned_at_the_state_before_it(seen):
    found = seen["one_value_a_turn"]
    [first], [last] = found["losses"]
    assert last < first / 100
    # Rewards 1, 0.25 and 1.
    assert found["after"] == pytest.approx([1.0, 0.25, 1.0], abs=0.1)


def test_the_slow_target_is_asked_without_dropout_and_the_weights_stay(seen):
    found = seen["utterances"]
    assert found["parameters moved"]
    assert found["slow"] == found["slow again"]
    assert found["weights are as before"]
    assert found["slow"] != found["after"]


def test_the_values_of_utterances_are_those_of_states_alone(seen):
    found = seen["utterances"]
    assert found["V with other utterances"] == found["V"]
    # Both first turns begin in one state.
    assert found["V"][0] == found["V"][2] != found["V"][1]


def test_q_tells_the_utterance_that_leads_to_a_right_answer_from_the_other_one(seen):
    found = seen["utterances"]
    # The second turn earns 1 after 12, 13 and 0 after 14; the first ones 0.9 of that value.
    right_first, right_last, wrong_first, wrong_last = (min(row[:2]) for row in found["after"])
    assert right_first > wrong_first + 0.5
    assert right_last > wrong_last + 0.5
    assert found["last"]["q_loss"] < found["first"]["q_loss"] / 4
    assert found["last"]["replay"] == 100  # of 600 transitions


def test_the_slow_target_follows_as_its_closed_form_says(seen):
    # One step of 1 for every weight, then five updates by 0.1: (1 - 0.1)^5 of the way is left.
    found = seen["slow_target"]
    assert found["left"] == pytest.approx(0.9**5, rel=1e-5)
    assert found["moved"] == pytest.approx(1 - 0.9**5, rel=1e-5)
    assert found["lags"] == sorted(found["lags"], reverse=True)


def test_a_checkpoint_holds_the_slow_target(seen):
    found = seen["utterances"]
    assert "target_world_size_1_rank_0.pt" in found["files"]
    assert found["slow moved"] != found["slow"]
    assert found["slow loaded"] == found["slow"]
    assert found["loaded"] == found["after"]


@pytest.mark.parametrize("strategy", [pytest.param("fsdp", marks=pytest.mark.long), "fsdp2"])
def test_the_target_answers_with_all_of_its_weights_where_processes_share_them(strategy):
    # FSDP1 keeps the gathered weights of its root, the head's among them, behind an evaluation;
    # FSDP2 keeps those of all modules without reshard_after_forward.
    found = run_process("ranks_process.py", strategy)
    assert not any(number for row in found["slow"] for number in row)
    assert found["again"] == found["online"]
    assert all(number for row in found["online"] for number in row)
