"""What ends a merge ends its process too, and no half of a model stays."""

import os
import signal
import socket
import subprocess
import threading
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf
from processes import is_alive, wait_for

from recipe.run.checkpoints import COMPLETE, MERGED
from recipe.run.errors import ConfigError, Terminated
from recipe.study import merging
from recipe.study.merging import merge_model


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "global_step_5"
    (folder / "actor/huggingface").mkdir(parents=True)
    (folder / "actor/fsdp_config.json").write_text("{}")
    (folder / COMPLETE).write_text("2\n")
    return folder


@pytest.fixture
def merges_by(tmp_path, monkeypatch):
    """Replaces Python by a shell that writes its number and a part of the draft ``$4``."""

    def replace(deed):
        program = tmp_path / "python"
        program.write_text(
            f'#!/bin/sh\nmkdir -p "$4"; echo part > "$4/model.safetensors"\n'
            f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid\n{deed}\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(merging, "sys", SimpleNamespace(executable=str(program)))
        return tmp_path / "pid"

    return replace


def merge(checkpoint, **limits):
    config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": str(checkpoint)}}})
    merge_model(config, lambda line: None, **limits)
    return config.actor_rollout_ref.model.path


def names_in(checkpoint):
    return {path.name for path in checkpoint.iterdir()}


def test_a_signal_during_a_merge_ends_its_process_and_removes_the_draft(checkpoint, merges_by):
    pid_file = merges_by("exec sleep 600")

    def terminate():
        wait_for(pid_file.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    teller = threading.Thread(target=terminate)
    before = signal.getsignal(signal.SIGTERM)
    teller.start()
    with pytest.raises(Terminated):
        merge(checkpoint)
    teller.join()
    assert signal.getsignal(signal.SIGTERM) == before
    assert not is_alive(int(pid_file.read_text()))
    assert names_in(checkpoint) == {"actor", COMPLETE}


def test_a_merge_beyond_its_limit_is_ended_and_told(checkpoint, merges_by):
    pid_file = merges_by("exec sleep 600")
    with pytest.raises(ConfigError, match="merging did not finish within 1 s; make a model of it"):
        merge(checkpoint, limit_s=1.0)
    assert not pid_file.exists() or not is_alive(int(pid_file.read_text()))
    assert names_in(checkpoint) == {"actor", COMPLETE}


def test_a_merge_that_fails_is_told_with_the_last_line_that_it_printed(checkpoint, merges_by):
    merges_by("echo reading; echo 'no room left' >&2; exit 3")
    with pytest.raises(ConfigError, match=r"merging ended with code 3: no room left$"):
        merge(checkpoint)
    assert names_in(checkpoint) == {"actor", COMPLETE}


def test_drafts_of_killed_commands_are_removed_and_those_of_others_stay(checkpoint, merges_by):
    merges_by("exit 0")
    with subprocess.Popen(["true"]) as ended:
        pass
    here = socket.gethostname()
    left = [f".{MERGED}.{here}.{pid}" for pid in (ended.pid, os.getpid())]
    # One that goes on, one of a machine whose processes are not known here, no draft.
    kept = [f".{MERGED}.{here}.{os.getppid()}", f".{MERGED}.another.{ended.pid}", ".merged.x"]
    for name in (*left, *kept):
        (checkpoint / name).mkdir()
    (checkpoint / left[1] / "of an earlier process").touch()
    assert merge(checkpoint) == str(checkpoint / MERGED)
    assert names_in(checkpoint) == {"actor", COMPLETE, MERGED, *kept}
    assert names_in(checkpoint / MERGED) == {"model.safetensors"}
