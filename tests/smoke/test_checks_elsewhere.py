"""Checks before the start that leave no trace, and those for a run on another machine."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from recipe.hint import main_hint
from recipe.run import devices
from recipe.run.checkpoints import mark_complete
from recipe.study import evaluate, export

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "data/tiny/base"
MODEL = "actor_rollout_ref.model.path"
GPU_PRESETS = ["gpu1", "gpu1_tiny", "node8", "multinode"]


@pytest.fixture
def command(composed_once, tmp_path, monkeypatch, capsys):
    """Run ``main_hint.py`` in this process -> (exit code, stdout, stderr)."""
    before = dict(os.environ)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)
    for module in (main_hint, devices):
        monkeypatch.setattr(module, "has_gpu", lambda: False)

    def run(*overrides: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["main_hint.py", *overrides])
        code = 0
        try:
            main_hint.main()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    yield run
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def checkpoint(tmp_path):
    """A training checkpoint as verl leaves it: weights in pieces, the rest in huggingface/."""
    folder = tmp_path / "run/checkpoints/global_step_5"
    shutil.copytree(BASE, folder / "actor/huggingface", ignore=shutil.ignore_patterns("*.safet*"))
    (folder / "actor/fsdp_config.json").write_text('{"FSDP_version": 2, "world_size": 1}')
    (folder / "actor/model_world_size_1_rank_0.pt").write_bytes(b"pieces")
    mark_complete(folder.parent, 5)
    return folder


@pytest.fixture
def stand_in(tmp_path):
    """The embedded model with the positions of a large one."""
    folder = shutil.copytree(BASE, tmp_path / "base")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32768}))
    return folder


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


def test_the_checks_of_an_evaluation_write_nothing(command, checkpoint, tmp_path):
    before = everything_in(tmp_path)
    given = ["hardware=laptop", "trainer.eval_only=true", f"{MODEL}={checkpoint}"]
    code, stdout, stderr = command(*given, "preflight_only=true")
    assert (code, stderr) == (0, "")
    assert f"model     {checkpoint}/merged, context" in stdout
    assert everything_in(tmp_path) == before


def test_a_run_is_evaluated_in_its_own_folder_on_files_it_was_not_trained_on(
    command, checkpoint, tmp_path
):
    mark_complete(tmp_path / "run/checkpoints", 5)
    given = ["hardware=laptop", f"hint.run_dir={tmp_path}/run", "preflight_only=true"]
    evaluates = [f"{MODEL}={checkpoint}", "trainer.eval_only=true"]
    code, _, stderr = command(
        *given, *evaluates, f"data.val_files={ROOT}/data/tiny/val_easy.parquet"
    )
    assert (code, stderr) == (0, "")


@pytest.mark.parametrize("name", ["base", "run/checkpoints/global_step_5"])
def test_a_relative_path_is_the_model_that_the_samples_were_drawn_with(
    name, command, checkpoint, stand_in, tmp_path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        evaluate, "check_settings_unchanged", lambda _, settings: seen.append(settings)
    )
    given = ["hardware=laptop", "trainer.eval_only=true", f"{MODEL}={name}"]
    code, _, stderr = command(*given, "preflight_only=true")
    assert (code, stderr) == (0, "")
    merged = "/merged" * (name != "base")
    assert [settings["model"] for settings in seen] == [f"{tmp_path}/{name}{merged}"]


def test_a_refused_evaluation_has_merged_nothing(command, checkpoint, tmp_path, monkeypatch):
    merged = []
    monkeypatch.setattr(export, "merge_model", merged.append)
    before = everything_in(tmp_path)
    given = ["hardware=laptop", "trainer.eval_only=true", f"{MODEL}={checkpoint}"]
    code, _, stderr = command(*given, "data.val_files=gone.parquet", "hint.seed=2")
    assert code == 2 and "gone.parquet" in stderr
    assert (merged, everything_in(tmp_path)) == ([], before)


def test_a_checkpoint_that_is_not_whole_is_refused_before_it_is_read(command, checkpoint):
    (checkpoint / "COMPLETE").unlink()
    given = ["hardware=laptop", "trainer.eval_only=true", f"{MODEL}={checkpoint}"]
    code, _, stderr = command(*given, "preflight_only=true")
    assert code == 2 and "COMPLETE" in stderr


@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_a_preset_with_gpus_is_checked_without_them(preset, command, stand_in, tmp_path):
    given = [f"hardware={preset}", f"{MODEL}={stand_in}", "trainer.method=sage"]
    given += [f"data.train_files={ROOT}/data/tiny/train.parquet"]
    given += [f"data.val_files={ROOT}/data/tiny/val_easy.parquet"]
    given += ["trainer.nnodes=2"] * (preset == "multinode")
    before = everything_in(tmp_path)
    code, stdout, stderr = command(*given, "preflight_only=true")
    assert (code, stderr) == (0, "")
    assert everything_in(tmp_path) == before

    code, _, stderr = command(*given)
    assert code == 2
    assert "no NVIDIA GPU" in stderr and "preflight_only=true" in stderr


def test_other_faults_of_a_gpu_preset_are_still_told_on_a_login_node(command, stand_in):
    given = ["hardware=node8", f"{MODEL}={stand_in}", "preflight_only=true"]
    given += [f"data.{kind}_files={ROOT}/data/tiny/train.parquet" for kind in ("train", "val")]
    # 2 + 8 storage units + 3 x 8 devices = 34
    code, _, stderr = command(*given, "ray_kwargs.ray_init.num_cpus=33")
    assert code == 2 and "34 are needed" in stderr
    code, _, stderr = command(*given, "actor_rollout_ref.rollout.tensor_model_parallel_size=3")
    assert code == 2 and "not whole replicas of 3" in stderr


def test_an_experiment_keeps_its_own_preset_on_a_login_node(command, stand_in):
    given = ["experiment=fig5", f"{MODEL}={stand_in}", "preflight_only=true"]
    given += [f"data.{kind}_files={ROOT}/data/tiny/train.parquet" for kind in ("train", "val")]
    code, stdout, _ = command(*given)
    assert code == 0
    assert "devices   1 x 8 cuda" in stdout and "laptop preset" not in stdout
