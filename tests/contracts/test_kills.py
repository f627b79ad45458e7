"""What a run that ends at a bad moment leaves, and how the next start goes on."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.utils.checkpoint.checkpoint_manager import find_latest_ckpt_path

from recipe.hint.hint_trainer import TRAINERS
from recipe.run.checkpoints import (
    STATE_FILE,
    mark_complete,
    point_at,
    repair_pointer,
    step_folder,
)
from recipe.run.errors import ConfigError
from recipe.run.launcher import leave_former_run
from recipe.run.resume import check_run_folder, is_finished
from recipe.run.run_folder import METRICS_FILE, RunFolder, read_rows

ACCURACY = "val-core/tiny/hard/acc/mean@4"


def settings(root, checkpoints=None, **trainer):
    given = {
        "experiment_name": "e",
        "project_name": "p",
        "resume_mode": "auto",
        "default_local_dir": str(checkpoints or root / "checkpoints"),
        "save_freq": 2,
        "test_freq": 2,
        "total_training_steps": 4,
        "val_before_train": False,
        "eval_only": False,
    }
    data = {"train_files": [str(root / "data.parquet")]}
    hint = {"run_dir": str(root), "teacher": {"cache_dir": str(root)}}
    return OmegaConf.create({"hint": hint, "data": data, "trainer": given | trainer})


def saved(root, step, **metrics):
    """A whole checkpoint with the metrics that were known when it was saved."""
    folder = step_folder(root, step)
    folder.mkdir(parents=True)
    (folder / METRICS_FILE).write_text(json.dumps({"hint/prompts": 8} | metrics))
    mark_complete(root, step)
    return folder


def started(monkeypatch, config, step, resumed_from=None):
    """A trainer after the end of its start."""
    trainer = TRAINERS["sync"].__new__(TRAINERS["sync"])
    trainer.config, trainer.global_steps = config, step
    trainer.folder, trainer._resumed_from = RunFolder(config.hint.run_dir), resumed_from
    trainer.total_training_steps = config.trainer.total_training_steps
    trainer.watchdog = SimpleNamespace(phase=lambda *_: nullcontext())
    monkeypatch.setattr(PPOTrainerSync, "on_init_end", lambda self: None)
    trainer.on_init_end()
    return trainer


def test_a_new_run_killed_at_the_end_of_its_first_save_begins_anew(tmp_path, monkeypatch):
    """verl's pointer is written before the checkpoint is marked as whole."""
    root = tmp_path / "checkpoints"
    started(monkeypatch, settings(tmp_path), 0)
    (step_folder(root, 2) / "actor").mkdir(parents=True)
    (step_folder(root, 2) / STATE_FILE).touch()
    (root / "latest_checkpointed_iteration.txt").write_text("2")
    assert repair_pointer(root) is None
    assert find_latest_ckpt_path(str(root)) is None


def test_a_run_that_starts_over_and_dies_in_its_start_up_never_takes_up_the_former_one(tmp_path):
    saved(tmp_path / "checkpoints", 4)
    leave_former_run(settings(tmp_path, resume_mode="disable"))
    # Its settings are in the folder now; the same command with resume_mode=auto:
    found = check_run_folder(settings(tmp_path))
    assert found == "exists, no complete checkpoint: starts at step 1"


@pytest.mark.parametrize(
    ("step", "lines", "more", "validates"),
    [
        (4, [], {}, True),  # the last step
        (2, [], {}, True),  # killed in the validation after step 2
        (2, [{"step": 2, ACCURACY: 0.5}], {}, False),
        (2, [{"step": 0, ACCURACY: 0.5}], {}, True),
        (2, [], {"test_freq": 3}, False),
        (4, [], {"test_freq": 3}, True),  # after the last step in any case
        (2, [], {"test_freq": -1}, False),
    ],
)
def test_a_validation_that_a_kill_cut_off_is_made_up(
    tmp_path, monkeypatch, step, lines, more, validates
):
    folder = saved(tmp_path / "checkpoints", step)
    RunFolder(tmp_path).metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = settings(tmp_path, **more)
    started(monkeypatch, config, step, folder)
    assert config.trainer.val_before_train is validates
    assert is_finished(config) is (step == 4 and not validates)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_run_gets_the_line_of_its_own_checkpoint_alone(tmp_path, monkeypatch, is_own):
    source = tmp_path if is_own else tmp_path / "other"
    folder = saved(source / "checkpoints", 2)
    started(monkeypatch, settings(tmp_path), 2, folder)
    steps = [row["step"] for row in read_rows(tmp_path / "metrics.jsonl")]
    assert steps == ([2] if is_own else [])


@pytest.mark.parametrize("mode", ["auto", "disable"])
def test_checkpoints_of_another_run_in_a_folder_of_their_own_are_not_gone_on_with(tmp_path, mode):
    root, one, two = tmp_path / "scratch", tmp_path / "one", tmp_path / "two"
    saved(root, 4)
    config = settings(one, root, resume_mode=mode)
    one.mkdir()
    (one / "config.yaml").touch()
    assert "step 4" in check_run_folder(config)
    with pytest.raises(
        ConfigError, match=r"holds step 4 of another run; give that run's hint.run_dir"
    ):
        check_run_folder(settings(two, root, resume_mode=mode))
    point_at(root, 0)  # nothing to go on with
    assert "starts at step 1" in check_run_folder(settings(two, root))


def test_the_metrics_of_a_step_are_saved_as_they_are_logged(tmp_path, monkeypatch):
    """verl takes `_dapo_filtered_reward_counts` out before it logs."""
    trainer = TRAINERS["sync"].__new__(TRAINERS["sync"])
    trainer.config = settings(tmp_path, max_actor_ckpt_to_keep=None)
    trainer.global_steps, trainer._resumed_from = 2, None
    trainer._metrics_of_step = {"hint/prompts": 8, "_dapo_filtered_reward_counts": {0.0: 2}}
    trainer.tracker = SimpleNamespace(state_dict=dict)
    trainer.folder = RunFolder(tmp_path)
    trainer._callback = SimpleNamespace(on_save=lambda **_: None)
    trainer.watchdog = SimpleNamespace(phase=lambda *_: nullcontext())
    actor = step_folder(tmp_path / "checkpoints", 2) / "actor"
    monkeypatch.setattr(PPOTrainerSync, "_save_checkpoint", lambda self: actor.mkdir())
    trainer._save_checkpoint()
    text = (step_folder(tmp_path / "checkpoints", 2) / METRICS_FILE).read_text()
    assert json.loads(text) == {"hint/prompts": 8}
