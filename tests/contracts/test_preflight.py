"""Misspelt keys, wrong types and resuming, as the checks before a start see them."""

import json
import shutil

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.settings import check_keys
from recipe.hint.command.compose import tidied
from recipe.run.checkpoints import mark_complete
from recipe.run.errors import ConfigError
from recipe.run.resume import check_same_run

MODEL = "actor_rollout_ref.model.path"
REFUSED = {
    "+trainer.totl_epochs=3": r"did you mean trainer.total_epochs\?",
    "++actor_rollout_ref.actor.optim.lrr=1e-6": r"mean actor_rollout_ref.actor.optim.lr\?",
    "+algorithm.gama=0.9": r"did you mean algorithm.gamma\?",
    "+hints.seed=1": r"did you mean hint\?",
    "+reward.launch_reward_fn_async=true": "is a key that neither",
    "trainer.val_before_train=no": "must be true or false",
    "data.train_batch_size=abc": "must be a number",
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_misspelt_key_or_a_value_of_another_type_is_refused(composed, given):
    with pytest.raises(ConfigError, match=REFUSED[given]):
        check_keys(composed("hardware=laptop", given))


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
    check_same_run(moved, ["hint.search"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trainer.method", "grpo"),
        ("hint.search.probe_n", 1),
        ("data.train_batch_size", 32),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", "gspo"),
        ("trainer.n_gpus_per_node", 2),
        ("data.apply_chat_template_kwargs", {"enable_thinking": True}),
        ("reward.custom_reward_function.path", "reward.py"),
    ],
)
def test_a_setting_that_defines_the_run_may_not_change(run, name, value):
    OmegaConf.update(run, name, value, force_add=True)
    with pytest.raises(ConfigError, match=r"another trainer.experiment_name to begin a run"):
        check_same_run(run, ["hint.search"])
    run.trainer.resume_mode = "disable"
    check_same_run(run, ["hint.search"])


def test_a_method_is_found_in_any_letters_and_a_home_in_any_list(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    given = ["trainer.method=SAGE_Light", "data.val_files=[~/a,~/b]", "hint.run_dir=~/x", "~data"]
    assert tidied(given) == [
        "trainer.method=sage-light",
        "data.val_files=[/home/me/a,/home/me/b]",
        "hint.run_dir=/home/me/x",
        "~data",
    ]
