"""The engines' own random numbers: from the run's seed where responses have none."""

import copy

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.run import seed_engines

GIVEN = "actor_rollout_ref.rollout.seed"
REPLICAS = 512


@pytest.fixture(scope="module")
def on_gpus(composed):
    """Settings of a node of 8 GPUs, of which only the engines' seed is looked at."""
    return composed("hardware=node8", "hint.run_dir=x")


def seed(config, tmp_path, *argv, **changes):
    """The engines' seed of a run, in both copies of its settings."""
    given = copy.deepcopy(config)
    given.trainer.default_local_dir = str(tmp_path)
    for name, value in changes.items():
        OmegaConf.update(given, name.replace("__", "."), value)
    resolved = copy.deepcopy(given)
    seed_engines(given, resolved, argv)
    assert OmegaConf.select(given, GIVEN) == OmegaConf.select(resolved, GIVEN)
    return OmegaConf.select(given, GIVEN)


def test_runs_of_several_seeds_share_no_engines_noise(on_gpus, tmp_path):
    """verl adds the replica's number: 512 of each of 25 seeds are 12,800 different ones."""
    firsts = [seed(on_gpus, tmp_path, hint__seed=each) for each in range(1, 26)]
    assert len({first + replica for first in firsts for replica in range(REPLICAS)}) == 12_800
    assert 0 <= min(firsts) and max(firsts) + REPLICAS < 2**31
    assert firsts[0] == seed(on_gpus, tmp_path, hint__seed=1)


def test_a_resumed_run_does_not_draw_again_what_it_has_drawn(on_gpus, tmp_path):
    at_first = seed(on_gpus, tmp_path)
    folder = tmp_path / "global_step_10"
    folder.mkdir()
    (folder / "COMPLETE").write_text("10")
    resumed = seed(on_gpus, tmp_path)
    assert abs(resumed - at_first) >= 1024
    # The same start again is the same.
    assert seed(on_gpus, tmp_path) == resumed
    assert seed(on_gpus, tmp_path, trainer__resume_mode="disable") == at_first


def test_seeds_of_responses_leave_the_engines_seed_as_it_is(on_gpus, tmp_path):
    assert seed(on_gpus, tmp_path, hint__seeded_sampling=True) == 42


@pytest.mark.parametrize("value", [42, 7])
def test_a_seed_of_the_users_stays(on_gpus, tmp_path, value):
    name = GIVEN.replace(".", "__")
    assert seed(on_gpus, tmp_path, f"{GIVEN}={value}", **{name: value}) == value
