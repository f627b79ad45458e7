"""A run goes on only with as many processes to a copy of the weights as it was saved with."""

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.same_run import check_same_run
from recipe.run.errors import ConfigError


@pytest.fixture(scope="module")
def begun(composed, tmp_path_factory):
    """Settings of a run with a checkpoint, whose engines' seed was derived at its first start."""
    folder = tmp_path_factory.mktemp("run")
    config = composed("hardware=laptop", "trainer.method=sage", f"hint.run_dir={folder}")
    OmegaConf.set_struct(config, False)
    config.trainer.experiment_name = "one"
    OmegaConf.resolve(config)
    OmegaConf.save(config, folder / "config.yaml")
    (folder / "checkpoints/global_step_10").mkdir(parents=True)
    return config


@pytest.mark.parametrize(
    "name", ["actor_rollout_ref.actor.fsdp_config.fsdp_size", "critic.fsdp.fsdp_size"]
)
def test_shards_of_another_size_are_another_run(begun, name):
    run = begun.copy()
    assert check_same_run(run) == []
    OmegaConf.update(run, name, 2)
    with pytest.raises(ConfigError, match=f"{name}=-1, now 2: give the old value to resume it"):
        check_same_run(run)


def test_the_engines_seed_of_this_start_is_not_told_as_a_change(begun):
    run = begun.copy()
    run.actor_rollout_ref.rollout.seed = 1024
    assert check_same_run(run) == []
