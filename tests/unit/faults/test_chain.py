"""The campaign says of each fault what followed it, and blames the one that did it."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

TESTS = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture
def campaign(monkeypatch, tmp_path):
    """The modules of the campaign, with a training of nothing in the place of the real one."""
    for folder in ("smoke", "faults"):
        monkeypatch.syspath_prepend(str(TESTS / folder))
    import chain
    import outcome
    from catalogue import Fault

    flaw = "none"

    def command(folder, *settings, preset):
        [steps] = [each.split("=")[1] for each in settings if "total_training_steps" in each]
        return [sys.executable, str(STAND_IN), str(folder), steps, flaw]

    def states(folder, straight, checkpoint):
        if not (folder / checkpoint / "COMPLETE").exists():
            return {}
        return {"tracker": not outcome._same_state(folder / checkpoint, straight / checkpoint)}

    monkeypatch.setattr(chain, "command", command)
    monkeypatch.setattr(chain, "STEPS", 8)
    monkeypatch.setattr(chain, "END_S", 60)
    monkeypatch.setattr(outcome, "_states", states)

    def run(*names, with_flaw="none"):
        nonlocal flaw
        chain.straight_run(tmp_path, "sync")
        flaw = with_flaw
        return chain.Chain([Fault(*name.split()) for name in names], tmp_path).run()

    return run


def test_faults_follow_each_other_in_one_training_that_stays_the_same(campaign):
    results = campaign("kill driver rollout", "pause trainer rollout", "term command rollout")
    assert [result.problems for result in results] == [[], [], []]
    assert [result.followed for result in results] == ["error", "went on", "killed"]
    assert [result.code for result in results] == [2, None, 143]
    assert results[0].said == "error: HintTaskRunner died"
    assert [result.resumed for result in results] == ["bit-identical"] * 3
    # Step 1 is whole before the first fault; a fault that ends the run does its step again.
    assert results[0].step == 2
    assert results[0].step < results[1].step < results[2].step


def test_a_prompt_that_is_lost_in_the_resumed_step_is_the_faults_before_it(campaign):
    results = campaign("kill driver rollout", "kill trainer rollout", with_flaw="loses a prompt")
    first, second = results
    assert first.problems == ["step 2 differs: 7 prompts, records"]
    assert second.resumed == "not judged: different since step 2"


def test_a_training_that_cannot_be_started_again_ends_the_chain(campaign):
    results = campaign("kill driver rollout", "kill trainer rollout", with_flaw="does not resume")
    assert len(results) == 1
    assert results[0].problems == ["resumed: failed: error: damaged"]
