"""Misspelt keys, resuming, services and templates, as the preflight sees them."""

import json
import shutil

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.settings import check_keys
from recipe.hint.command.compose import tidied
from recipe.run.checkpoints import digests_of_run, mark_complete
from recipe.run.errors import ConfigError
from recipe.run.resume import SAME, check_same_run

MODEL = "actor_rollout_ref.model.path"
TYPOS = {
    "+trainer.totl_epochs=3": "trainer.total_epochs",
    "+trainer.save_frq=3": "trainer.save_freq",
    "+data.train_batchsize=4": "data.train_batch_size",
    "+data.max_promt_length=4": "data.max_prompt_length",
    "++actor_rollout_ref.actor.optim.lrr=1e-6": "actor_rollout_ref.actor.optim.lr",
    "+actor_rollout_ref.rollout.temprature=1": "actor_rollout_ref.rollout.temperature",
    "+actor_rollout_ref.actor.ppo_mini_batch_sze=1": "actor_rollout_ref.actor.ppo_mini_batch_size",
    "+algorithm.gama=0.9": "algorithm.gamma",
    "+critic.ppo_epoch=1": "critic.ppo_epochs",
    "+hints.seed=1": "hint",
}
TYPES = {
    "trainer.val_before_train=no": "must be true or false",
    "trainer.eval_only=no": "must be true or false",
    "data.train_batch_size=abc": "must be a number",
}


@pytest.mark.parametrize("given", TYPOS)
def test_a_misspelt_key_is_refused_with_the_right_name(composed, given):
    with pytest.raises(ConfigError, match=rf"did you mean {TYPOS[given]}\?"):
        check_keys(composed("hardware=laptop", given))


@pytest.mark.parametrize("given", TYPES)
def test_a_value_of_another_type_is_refused(composed, given):
    with pytest.raises(ConfigError, match=TYPES[given]):
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
    return config


def moved(plain, tmp_path):
    """The same settings after the project's folder was moved."""
    shutil.move(tmp_path / "project", tmp_path / "elsewhere/project")
    return OmegaConf.create(json.loads(plain.replace("ROOT", f"{tmp_path}/elsewhere")))


@pytest.mark.parametrize("has_digests", [False, True])
def test_a_moved_project_is_the_same_run(run, plain, tmp_path, has_digests):
    facts = digests_of_run(run) if has_digests else {}
    mark_complete(run.trainer.default_local_dir, 3, **facts)
    assert check_same_run(moved(plain, tmp_path), ["hint.search"]) == []


@pytest.mark.parametrize("name", ["train.parquet", "model/config.json"])
def test_another_content_under_the_same_name_is_another_run(run, tmp_path, name):
    mark_complete(run.trainer.default_local_dir, 3, **digests_of_run(run))
    (tmp_path / "project" / name).write_text("another")
    with pytest.raises(ConfigError, match="has another content than when .*global_step_3 was"):
        check_same_run(run, ["hint.search"])


def test_a_model_of_another_name_is_another_run(run, tmp_path):
    mark_complete(run.trainer.default_local_dir, 3)
    run.actor_rollout_ref.model.path = f"{tmp_path}/other"
    with pytest.raises(ConfigError, match=rf"holds a run with {MODEL}=.*, now .*other: give the"):
        check_same_run(run, ["hint.search"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hint.seed", 5),
        ("hint.search.probe_n", 1),
        ("data.train_batch_size", 32),
        ("actor_rollout_ref.actor.optim.lr", 0.5),
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hint.watchdog.sync_s", 9.0),
        ("hint.samples.prompts_per_step", 3),
        ("hint.scaf.rollouts", 2),
        ("trainer.save_freq", 7),
    ],
)
def test_a_setting_that_does_not_is_told_in_one_line(run, name, value):
    OmegaConf.update(run, name, value)
    [line] = check_same_run(run, ["hint.search"])
    assert line.startswith(f"changed   since the run began: {name} ")


def test_disabled_resuming_compares_nothing(run):
    run.trainer.resume_mode, run.hint.seed = "disable", 5
    assert check_same_run(run, ["hint.search"]) == []


def test_the_settings_that_define_a_run_are_there(run):
    missing = object()
    names = [name for name in SAME if " x " not in name]
    found = [name for name in names if OmegaConf.select(run, name, default=missing) is missing]
    # Keys of the user's own, or of other programs.
    assert set(found) <= {"reward.reward_kwargs", "data.apply_chat_template_kwargs"}


def test_a_method_is_found_in_any_letters_and_a_home_in_any_list(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    given = ["trainer.method=SAGE_Light", "data.val_files=[~/a,~/b]", "hint.run_dir=~/x", "~data"]
    assert tidied(given) == [
        "trainer.method=sage-light",
        "data.val_files=[/home/me/a,/home/me/b]",
        "hint.run_dir=/home/me/x",
        "~data",
    ]
