"""A folder holds one run: what defines it may not change under a resumed one."""

import copy
import os
import random
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.folder import (
    check_run_folder,
    check_steps_left,
    is_finished,
)
from recipe.hint.adapter.preflight.run import preflight
from recipe.hint.adapter.preflight.same_run import DEFINES, OPERATION, check_same_run
from recipe.hint.adapter.preflight.settings import leaves
from recipe.hint.methods import METHODS
from recipe.run import run_folder
from recipe.run.checkpoints import digests_of, digests_of_run, mark_complete
from recipe.run.errors import ConfigError
from recipe.run.launcher import evaluation_folder
from recipe.run.run_folder import RunFolder, keep_config

TURNS = [name for name, cls in METHODS.items() if cls.has_own_credit]

OPERATIONAL = {
    "trainer.total_training_steps": 500,
    "trainer.save_freq": 7,
    "trainer.logger": ["console"],
    "data.val_files": "other.parquet",
    "hint.watchdog.sync_s": 9.0,
    "hint.teacher.num_parallel": 3,
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": 4096,
    "ray_kwargs.ray_init.num_cpus": 40,
}


@pytest.fixture(scope="module")
def sage(composed):
    config = composed("hardware=laptop", "trainer.method=sage")
    OmegaConf.set_struct(config, False)
    return config


@pytest.fixture
def run(sage, tmp_path):
    """Settings of a run of which ten steps are on disk."""
    config = copy.deepcopy(sage)
    config.hint.run_dir = str(tmp_path)
    config.trainer.experiment_name = "one"
    OmegaConf.resolve(config)
    OmegaConf.save(config, tmp_path / "config.yaml")
    (tmp_path / "checkpoints/global_step_10").mkdir(parents=True)
    return config


@pytest.mark.parametrize("method", ["sage", *TURNS])
def test_a_run_of_every_kind_of_method_goes_on_in_its_own_folder(composed, tmp_path, method):
    node = method.replace("-", "_")
    has_stages = hasattr(METHODS[method].settings_cls, "stage1_steps")
    stages = [f"hint.{node}.stage1_steps=1"] if has_stages else []
    given = ["hardware=laptop", f"trainer.method={method}", f"hint.run_dir={tmp_path}", *stages]
    given.append("actor_rollout_ref.rollout.prompt_length=512")
    config = composed(*given)
    OmegaConf.set_struct(config, False)
    OmegaConf.resolve(config)
    OmegaConf.save(config, tmp_path / "config.yaml")  # as the start keeps it
    checkpoint = tmp_path / "checkpoints/global_step_10"
    checkpoint.mkdir(parents=True)
    (checkpoint / "COMPLETE").write_text("10\n")
    before = copy.deepcopy(config)
    gone = "(resumes after step 10; records.jsonl of the steps before is gone)"
    assert gone in "\n".join(preflight(config, given))
    (tmp_path / "records.jsonl").touch()
    assert "(resumes after step 10)" in "\n".join(preflight(config, given))
    assert config == before


def other(value, draw):
    """A value of the same kind that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + draw.randint(1, 9)
    return {"key": 1} if isinstance(value, dict) else "another"


def part_of(name, names):
    return any(name == each or name.startswith(f"{each}.") for each in names)


@pytest.mark.parametrize(
    "given",
    [
        {"actor_rollout_ref.actor.loss_scale_factor": 7},
        {"actor_rollout_ref.actor.policy_loss.loss_mode": "gspo"},
        {"critic.optim.lr": 0.5},
        {"critic.ppo_epochs": 3},
    ],
)
def test_another_loss_or_another_critic_is_another_run(run, given):
    [(name, value)] = given.items()
    OmegaConf.update(run, name, value, force_add=True)
    with pytest.raises(ConfigError, match=f"{name}=.*, now {value}: give the old value"):
        check_same_run(run)


def test_every_setting_that_defines_the_run_is_refused_with_both_values(run, tmp_path):
    before, draw = (tmp_path / "config.yaml").read_bytes(), random.Random(7)
    defining = [
        (name, value)
        for name, value in leaves(OmegaConf.to_container(run))
        if part_of(name, DEFINES) and not part_of(name, OPERATION)
    ]
    assert len(defining) > 70  # four at a time: so many are told
    for start in range(0, len(defining), 4):
        old = dict(defining[start : start + 4])
        new = {name: other(value, draw) for name, value in old.items()}
        for name in new:
            OmegaConf.update(run, name, new[name], force_add=True)
        with pytest.raises(ConfigError) as caught:
            check_same_run(run)
        for name in old:
            OmegaConf.update(run, name, old[name], merge=False)
        said = str(caught.value).replace(f"['{Path('another').resolve()}']", "another")  # files
        assert all(f"{name}=" in said and f", now {new[name]}" in said for name in new)
    assert (tmp_path / "config.yaml").read_bytes() == before


def test_another_method_model_and_seed_are_named_together(run):
    run.trainer.method, run.actor_rollout_ref.model.path, run.hint.seed = "grpo", "/m", 5
    with pytest.raises(ConfigError) as caught:
        check_same_run(run)
    for words in ("trainer.method=sage, now grpo", "model.path=", "now /m", "hint.seed=1, now 5"):
        assert words in str(caught.value)


@pytest.mark.parametrize("name", sorted(OPERATIONAL))
def test_a_setting_that_does_not_is_told_in_one_line(name, run):
    OmegaConf.update(run, name, OPERATIONAL[name])
    [line] = check_same_run(run)
    assert line.startswith(f"changed   since the run began: {name} ")
    is_file = name == "data.val_files"
    new = [str(Path.cwd() / OPERATIONAL[name])] if is_file else OPERATIONAL[name]
    assert line.endswith(f" -> {new}")


def test_the_same_settings_written_otherwise_are_the_same_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink(run.actor_rollout_ref.model.path, tmp_path / "model")
    run.actor_rollout_ref.model.path = "model"
    run.data.train_files = [run.data.train_files]
    run.trainer.experiment_name = run.actor_rollout_ref.rollout.trace.experiment_name = "two"
    run.hint.teacher.cache_dir = str(tmp_path / run.hint.teacher.cache_dir)
    # 1 node x 1 device = 1; another number of devices cannot read the checkpoint
    assert check_same_run(run) == []
    run.trainer.n_gpus_per_node = 2
    with pytest.raises(ConfigError, match="trainer.nnodes x trainer.n_gpus_per_node=1, now 2"):
        check_same_run(run)


def test_a_setting_that_an_older_version_did_not_have_is_not_compared(run, tmp_path):
    old = yaml.safe_load((tmp_path / "config.yaml").read_text())
    del old["hint"]["conditioning"]
    old["hint"]["gone"] = 3
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(old))
    assert check_same_run(run) == []


def test_a_folder_without_a_step_or_with_resuming_disabled_may_begin_another_run(run, tmp_path):
    run.trainer.method = "grpo"
    run.trainer.resume_mode = "disable"
    assert check_same_run(run) == []
    run.trainer.resume_mode = "auto"
    (tmp_path / "checkpoints/global_step_10").rmdir()
    assert check_same_run(run) == []
    # records without a checkpoint are a run too
    (tmp_path / "records.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="trainer.method=sage, now grpo"):
        check_same_run(run)


@pytest.mark.parametrize("text", ["trainer: [", "[]", "\x00"])
def test_damaged_settings_of_a_run_are_told_in_one_line(text, run, tmp_path):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match="nothing says which run its folder holds"):
        check_same_run(run)


def test_settings_of_earlier_starts_are_kept(tmp_path):
    path = tmp_path / "run/config.yaml"
    for text in ("a: 1\n", "a: 1\n", "a: 2\n", "a: 3\n"):
        keep_config(path, text)
    names = {each.name: each.read_text() for each in path.parent.iterdir()}
    assert names == {"config.yaml": "a: 3\n", "config.1.yaml": "a: 1\n", "config.2.yaml": "a: 2\n"}


def test_settings_of_an_earlier_start_outlive_a_full_disk(tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device", str(path))

    path = tmp_path / "run/config.yaml"
    keep_config(path, "seed: 1\n")
    monkeypatch.setattr(run_folder, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        keep_config(path, "seed: 2\n")
    assert path.read_text() == "seed: 1\n"


def test_an_evaluation_keeps_its_settings_apart_from_the_runs(run, tmp_path):
    assert evaluation_folder(run) == tmp_path / "evaluation"


# -- what is in the folder ----------------------------------------------------------------------


def settings(root, **trainer):
    """Of a run in ``root``, as the check before the start reads them."""
    given = {"experiment_name": "e", "project_name": "p", "resume_mode": "auto", "test_freq": -1}
    given["default_local_dir"] = str(root / "checkpoints")
    return OmegaConf.create(
        {
            "hint": {"run_dir": str(root), "teacher": {"cache_dir": str(root)}},
            "data": {"train_files": [str(root / "data.parquet")]},
            "trainer": given | trainer,
        }
    )


def test_a_training_does_not_begin_in_the_folder_of_an_evaluation(tmp_path):
    (tmp_path / "evaluation").mkdir()
    with pytest.raises(ConfigError, match="holds an evaluation, which is not of the weights"):
        check_run_folder(settings(tmp_path))
    (tmp_path / "config.yaml").touch()  # it is that of the run itself
    assert check_run_folder(settings(tmp_path)) == "new"


def test_a_run_is_finished_when_its_last_step_is_saved_and_logged(tmp_path):
    def finished(last, **trainer):
        return is_finished(settings(tmp_path, total_training_steps=last, **trainer))

    assert not finished(3)
    (tmp_path / "checkpoints/global_step_3").mkdir(parents=True)
    mark_complete(tmp_path / "checkpoints", 3)
    assert not finished(3)  # killed between its checkpoint and its line
    (tmp_path / "metrics.jsonl").write_text('{"step": 3, "hint/prompts": 4}\n')
    assert finished(3) and not finished(4)
    assert not finished(3, resume_mode="disable")
    assert not finished(3, val_only=True)
    check_steps_left(settings(tmp_path), 3)
    for given in (
        {},
        {
            "resume_mode": "resume_path",
            "resume_from_path": f"{tmp_path}/checkpoints/global_step_3",
        },
    ):
        with pytest.raises(ConfigError, match="total_training_steps=2, .* resume after step 3"):
            check_steps_left(settings(tmp_path, **given), 2)
    check_steps_left(settings(tmp_path, resume_mode="disable"), 2)


@pytest.mark.parametrize("name", ["records.jsonl", "metrics.jsonl", "samples.jsonl"])
def test_lines_that_a_run_has_lost_since_its_checkpoint_are_told(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"step": 3}\n' * 4)  # 48 bytes
    (tmp_path / "records.jsonl").touch()
    (tmp_path / "checkpoints/global_step_3").mkdir(parents=True)
    mark_complete(tmp_path / "checkpoints", 3, lines=RunFolder(tmp_path).settle())
    path.write_text('{"step": 3}\n' * 5)
    config = settings(tmp_path)
    assert check_run_folder(config) == "resumes after step 3"
    path.write_text('{"step": 3}\n' * 4)  # as `begin_after` leaves it
    assert check_run_folder(config) == "resumes after step 3"
    path.write_text('{"step": 3}\n{"st')
    lost = f"resumes after step 3; {name} has lost 32 bytes of the steps before"
    assert check_run_folder(config) == lost
    path.unlink()
    assert check_run_folder(config) == f"resumes after step 3; {name} of the steps before is gone"


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("mode", ["auto", "resume_path"])
def test_a_run_does_not_go_on_in_a_file_that_was_changed(tmp_path, mode, is_one):
    data = tmp_path / "data.parquet"
    data.write_text("one")
    (tmp_path / "records.jsonl").touch()
    folder = tmp_path / "checkpoints/global_step_3"
    folder.mkdir(parents=True)
    mark_complete(tmp_path / "checkpoints", 3, train_files=[*digests_of([str(data)]).values()])
    path = str(folder) if mode == "resume_path" else None
    config = settings(tmp_path, resume_mode=mode, resume_from_path=path)
    if is_one:
        config.data.train_files = str(data)
    assert check_run_folder(config) == f"resumes {'from ' + path if path else 'after step 3'}"
    data.write_text("two")
    with pytest.raises(ConfigError, match=r"data.train_files=.*data.parquet has another content"):
        check_run_folder(config)
    # Nor does another run that begins at the checkpoint, which has a place in the data.
    other = settings(tmp_path / "other", resume_mode="resume_path", resume_from_path=str(folder))
    other.data = config.data
    with pytest.raises(ConfigError, match=r"another content .* or begin a run at its weights"):
        check_run_folder(other)
    data.write_text("one")
    assert check_run_folder(other) == f"resumes from {folder}"


def test_the_same_command_by_path_does_not_begin_again_over_its_own_steps(tmp_path):
    """Begun at step 100 of another run, killed at 190 with step 150 on the disk."""
    for root, step in ((tmp_path / "a/checkpoints", 100), (tmp_path / "b/checkpoints", 150)):
        (root / f"global_step_{step}").mkdir(parents=True)
        mark_complete(root, step)
    path = str(tmp_path / "a/checkpoints/global_step_100")
    config = settings(tmp_path / "b", resume_mode="resume_path", resume_from_path=path)
    with pytest.raises(ConfigError, match=r"has step 150 of a run that .*resume_mode=auto"):
        check_run_folder(config)


@pytest.mark.parametrize(
    "name, value",
    [
        ("actor_rollout_ref.actor.optim.lr", 5e-7),
        ("actor_rollout_ref.actor.optim.weight_decay", 0.3),
        ("data.seed", 7),
        ("trainer.n_gpus_per_node", 2),
    ],
)
def test_what_a_checkpoint_of_another_run_brings_along_cannot_be_set(run, tmp_path, name, value):
    checkpoint = tmp_path / "checkpoints/global_step_10"
    mark_complete(tmp_path / "checkpoints", 10)
    other = copy.deepcopy(run)
    other.hint.run_dir = str(tmp_path / "other")
    other.trainer.default_local_dir = str(tmp_path / "other/checkpoints")
    other.trainer.resume_mode = "resume_path"
    other.trainer.resume_from_path = str(checkpoint)
    assert check_run_folder(other) == f"resumes from {checkpoint}"
    OmegaConf.update(other, name, value)
    with pytest.raises(ConfigError, match="would not replace it; give .* begin a run at its weig"):
        check_run_folder(other)


@pytest.mark.parametrize(
    "name",
    [
        "data.apply_chat_template_kwargs.enable_thinking",
        "reward.custom_reward_function.reward_kwargs.strict",
        "hint.teacher.body.top_k",
    ],
)
@pytest.mark.parametrize("value", [1, 0, False])
def test_a_key_of_the_users_own_that_is_left_out_makes_another_run(run, tmp_path, name, value):
    OmegaConf.update(run, name, value, force_add=True)
    OmegaConf.save(run, tmp_path / "config.yaml")
    assert check_same_run(run) == []
    section, _, key = name.rpartition(".")
    OmegaConf.select(run, section).pop(key)
    with pytest.raises(ConfigError, match=f"{section}={{'{key}': {value}}}, now {{}}: give"):
        check_same_run(run)


def test_another_reward_makes_another_run(run):
    run.reward.custom_reward_function.path = "/f.py"
    with pytest.raises(ConfigError, match=r"path=None, now .*f.py: give the"):
        check_same_run(run)


def test_the_users_texts_are_kept_by_content(tmp_path):
    texts = tmp_path / "prompts.yaml"
    texts.write_text("revise: again")
    (tmp_path / "records.jsonl").touch()
    (tmp_path / "checkpoints/global_step_3").mkdir(parents=True)
    config = settings(tmp_path)
    OmegaConf.update(config, "hint.prompts", str(texts), force_add=True)
    mark_complete(tmp_path / "checkpoints", 3, **digests_of_run(config))
    assert check_run_folder(config) == "resumes after step 3"
    texts.write_text("revise: once more")
    with pytest.raises(ConfigError, match=r"hint.prompts=.* has another content than when"):
        check_run_folder(config)


@pytest.mark.parametrize(
    "path, told",
    [
        ("global_step_3/actor", "must be an existing folder global_step_N"),
        ("global_step_x", "must be an existing folder global_step_N"),
        ("global_step_4", "must be an existing folder global_step_N"),
        ("global_step_5", r"global_step_5 is not whole \(COMPLETE is missing\)"),
    ],
)
def test_a_path_to_resume_from_names_a_whole_checkpoint(tmp_path, path, told):
    root = tmp_path / "checkpoints"
    for name in ("global_step_3/actor", "global_step_5", "global_step_x"):
        (root / name).mkdir(parents=True)
    mark_complete(root, 3)
    config = settings(tmp_path, resume_mode="resume_path", resume_from_path=str(root / path))
    with pytest.raises(ConfigError, match=told):
        check_run_folder(config)
