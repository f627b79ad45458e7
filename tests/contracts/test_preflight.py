"""What a run may be resumed with, as the checks before a start see it."""

import json
import shutil

import pytest
from omegaconf import OmegaConf

from recipe.run.checkpoints import mark_complete
from recipe.run.errors import ConfigError
from recipe.run.resume import check_same_run

MODEL = "actor_rollout_ref.model.path"


@pytest.fixture(scope="module")
def plain(composed):
    """Settings of a run in ``ROOT/project``, as text."""
    given = ("trainer.method=sage", "hint.run_dir=ROOT/project/run", f"{MODEL}=ROOT/project/model")
    files = ("data.train_files=ROOT/project/train.parquet", "hint.prompts=ROOT/project/texts.yaml")
    config = composed("hardware=laptop", *given, *files)
    return json.dumps(OmegaConf.to_container(config, resolve=True))


@pytest.fixture
def run(plain, tmp_path):
    """Settings of a run of which three steps are on disk."""
    config = OmegaConf.create(json.loads(plain.replace("ROOT", str(tmp_path))))
    project = tmp_path / "project"
    (project / "model").mkdir(parents=True)
    (project / "model/config.json").write_text('{"size": 1}')
    for name in ("train.parquet", "texts.yaml"):
        (project / name).write_text(name)
    (project / "run/checkpoints/global_step_3").mkdir(parents=True)
    OmegaConf.save(config, project / "run/config.yaml")
    mark_complete(config.trainer.default_local_dir, 3)
    return config


def test_a_moved_project_is_the_same_run(run, plain, tmp_path):
    shutil.move(tmp_path / "project", tmp_path / "elsewhere/project")
    moved = OmegaConf.create(json.loads(plain.replace("ROOT", f"{tmp_path}/elsewhere")))
    check_same_run(moved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trainer.method", "grpo"),
        ("hint.search.probe_n", 1),
        ("data.train_batch_size", 32),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", "gspo"),
        ("trainer.n_gpus_per_node", 2),
        ("hint.temperature", 0.5),
        ("reward.custom_reward_function.path", "reward.py"),
    ],
)
def test_a_setting_that_defines_the_run_may_not_change(run, name, value):
    OmegaConf.update(run, name, value, force_add=True)
    with pytest.raises(ConfigError, match=r"another trainer.experiment_name to begin a run"):
        check_same_run(run)
    run.trainer.resume_mode = "disable"
    check_same_run(run)


def test_limits_and_places_may_change(run):
    for name, value in (("hint.watchdog.answer_s", 1.0), ("hint.teacher.base_url", "elsewhere")):
        OmegaConf.update(run, name, value)
    check_same_run(run)
