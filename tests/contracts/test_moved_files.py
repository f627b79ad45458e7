"""A run goes on with files of the same content, wherever they lie, and with other measurements."""

import copy
import json

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.same_run import check_same_run
from recipe.run.checkpoints import TEXT_FILES, digests_of_run, mark_complete
from recipe.run.errors import ConfigError

NAMES = ["data.train_files", *TEXT_FILES]
MEASURED = {
    "hint.samples.prompts_per_step": 3,
    "hint.samples.text_bytes": 500,
    "hint.verify.worker_memory_mib": 4000,
    "hint.verify.wall_factor": 5.0,
}


@pytest.fixture(scope="module")
def resolved(composed):
    """Plain settings of a run in a folder ``FOLDER``."""
    config = composed("hardware=laptop", "trainer.method=sage", "hint.run_dir=FOLDER")
    return json.dumps(OmegaConf.to_container(config, resolve=True))


@pytest.fixture
def run(resolved, tmp_path):
    """Settings of a run with files of its own, of which three steps are on disk."""
    config = OmegaConf.create(json.loads(resolved.replace("FOLDER", f"{tmp_path}/run")))
    for name in NAMES:
        (tmp_path / name).write_text(f"content of {name}")
        OmegaConf.update(config, name, str(tmp_path / name))
    (tmp_path / "run/checkpoints/global_step_3").mkdir(parents=True)
    OmegaConf.save(config, tmp_path / "run/config.yaml")
    return config


def moved(run, name, tmp_path):
    changed = copy.deepcopy(run)
    new = (tmp_path / name).rename(tmp_path / "moved")
    OmegaConf.update(changed, name, str(new))
    return changed, new


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by_path", [False, True])
def test_a_file_that_was_moved_is_the_same(run, tmp_path, name, by_path):
    mark_complete(tmp_path / "run/checkpoints", 3, **digests_of_run(run))
    changed, new = moved(run, name, tmp_path)
    if by_path:
        changed.trainer.resume_mode = "resume_path"
        changed.trainer.resume_from_path = f"{tmp_path}/run/checkpoints/global_step_3"
    [line] = check_same_run(changed)
    assert f"{name} " in line and str(new) in line
    new.write_text("another content")
    with pytest.raises(ConfigError, match=f"holds a run with {name}=.*, now .*moved"):
        check_same_run(changed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_whole", [False, True])
def test_without_a_digest_the_path_decides(run, tmp_path, name, is_whole):
    if is_whole:  # of an early version
        mark_complete(tmp_path / "run/checkpoints", 3)
    changed, _ = moved(run, name, tmp_path)
    with pytest.raises(ConfigError, match=f"holds a run with {name}=.*, now .*moved"):
        check_same_run(changed)


def test_one_file_less_is_another_run(run, tmp_path):
    files = [run.data.train_files, str(tmp_path / "more")]
    (tmp_path / "more").write_text("more")
    run.data.train_files = files
    OmegaConf.save(run, tmp_path / "run/config.yaml")
    mark_complete(tmp_path / "run/checkpoints", 3, **digests_of_run(run))
    for other in (files[:1], files[::-1]):
        run.data.train_files = other
        with pytest.raises(ConfigError, match="holds a run with data.train_files="):
            check_same_run(run)


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_measured_or_waited_for_may_change(run, name):
    OmegaConf.update(run, name, MEASURED[name])
    [line] = check_same_run(run)
    assert line.startswith(f"changed   since the run began: {name} ")


def test_an_adapter_given_by_another_path_is_the_same(run, tmp_path, monkeypatch):
    name = "actor_rollout_ref.model.lora_adapter_path"
    (tmp_path / "adapter").mkdir()
    OmegaConf.update(run, name, str(tmp_path / "adapter"))  # as the launcher keeps it
    OmegaConf.save(run, tmp_path / "run/config.yaml")
    monkeypatch.chdir(tmp_path)
    OmegaConf.update(run, name, "adapter")
    assert check_same_run(run) == []
