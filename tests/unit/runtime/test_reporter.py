"""The lines of the console: each kind of method is told what its user needs."""

import io
import json
import math
import os
import pty
import subprocess
import sys

import pytest
import wandb
from rich.console import Console as RichConsole

from recipe.run.reporter import StepReporter, closing_lines, describe, step_table
from recipe.run.run_folder import RunFolder

STEP = {
    "timing_s/step": 9.84,
    "timing_s/gen": 6.0,
    "timing_s/old_log_prob": 1.0,
    "timing_s/update_actor": 2.5,
    "timing_s/update_weights": 0.3,
    "critic/score/mean": 0.25,
    "hint/prompts": 8.0,
    "hint/mixed_groups": 5.0,
    "hint/rollout_tokens": 900.0,
    "hint/tokens": 100.0,
    "hint/used_no_hint": 8.0,
}
HINTED = {
    **STEP,
    "hint/used_no_hint": 2.0,
    "hint/used_level_1": 1.0,
    "hint/used_level_2": 5.0,
    "hint/generate_requested": 6.0,
    "hint/generate_success": 6.0,
}
# Of 32 conversations 4 become right and 1 becomes wrong: 8 right first, 8 + 4 - 1 = 11 last.
TURNS = {
    "acc_t1": 8 / 32,
    "acc_t2": 11 / 32,
    "delta": 3 / 32,
    "delta_low": -0.02,
    "delta_high": 0.21,
}
TOLD = "first 25.0 %, last 34.4 %, +9.4 [-2.0, +21.0]"
PHASES = "   9.8 s  rollout   6.0  log-probs   1.0  update   2.5  sync   0.3"


def turns(prefix):
    return {f"{prefix}{name}": value for name, value in TURNS.items()}


def test_a_step_with_hints_tells_its_levels_and_what_they_brought():
    assert describe(HINTED, "step  3/45", "0:07 left") == (
        f"step  3/45  {PHASES}  reward  0.250  informative 5/8  levels 0:2 1:1 2:5  hints 6/6  "
        "tokens    1000  0:07 left"
    )


def test_a_step_of_a_method_without_hints_tells_of_none():
    told = f"{PHASES}  reward  0.250  informative 5/8  tokens    1000"
    assert describe(STEP, "step 3/45") == f"step 3/45  {told}"


def test_a_step_of_a_method_with_turns_tells_what_the_last_turn_changes():
    told = f"{PHASES}  turns {TOLD}  informative 5/8  tokens    1000"
    assert describe(STEP | turns("turns/"), "step 3/45") == f"step 3/45  {told}"


def test_lines_of_all_steps_are_aligned():
    early, late = (
        HINTED | {"hint/prompts": 16.0, "hint/mixed_groups": n, "timing_s/step": 12.5 * n}
        for n in (1, 10)
    )
    lines = [describe(row, head) for row, head in ((early, "step  1/45"), (late, "step 11/45"))]
    for word in ("rollout", "informative", "levels", "hints", "tokens"):
        assert len({line.index(word) for line in lines}) == 1


def test_a_validation_is_told_by_its_source_and_with_turns_by_both_ends():
    shares = {"val-core/a/acc/mean@4": 11 / 32, "val-core/b/acc/mean@4": 0.5}
    told = describe(shares, "step 0/45")
    assert told == "step 0/45  accuracy a: 34.4 %  accuracy b: 50.0 %"
    told = describe(shares | turns("val-turns/a/") | turns("val-turns/b/"), "step 0/45")
    assert told == f"step 0/45  accuracy a: {TOLD}  accuracy b: {TOLD}"


def screen(rows, **options):
    """What a terminal shows of the table."""
    shown = RichConsole(file=io.StringIO(), force_terminal=True, width=80, **options)
    shown.print(step_table(rows, "0:07 left"))
    return shown.file.getvalue()


def test_a_terminal_has_a_row_for_each_step_with_bars_of_its_phases_and_levels():
    validation = {"step": 0, "val-core/a/acc/mean@4": 0.5}
    head, first, second, caption = (
        line.rstrip()
        for line in screen([validation, HINTED | {"step": 1}], no_color=True, color_system=None)
        .replace("\x1b[1m", "")
        .replace("\x1b[0m", "")
        .splitlines()
    )
    assert head.split() == ["step", "seconds", "reward", "informative", "phases", "levels", "a"]
    assert first.split() == ["0", "50.0", "%"]
    # 14 marks are 9.84 s: 6.0, 1.0, 2.5 and 0.3 of them are 9, 1, 4 and 0; levels 2, 1, 5 of 8
    assert second.split() == ["1", "9.8", "0.250", "5/8", "█" * 9 + "▓" + "▒" * 4, "▃▂▅"]
    assert caption == "█ rollout  ▓ log-probs  ▒ update  ░ sync  0:07 left"


def test_a_terminal_has_colours_but_where_none_are_wanted():
    rows, blue = [HINTED | {"step": 1}], "\x1b[34m"
    # rich reads the environment that there was when it was imported
    assert blue in screen(rows, color_system="standard", _environ={})
    assert blue not in screen(rows, color_system="standard", _environ={"NO_COLOR": "1"})


SHOW = """
from pathlib import Path
from recipe.run.reporter import Console, StepReporter
from recipe.run.run_folder import RunFolder
import json, sys
class Backends:
    def log(self, **_): pass
folder = RunFolder(sys.argv[1]); folder.create(); console = Console(folder)
folder.say("ready")
for step in (1, 2): StepReporter(Backends(), folder, 2).log(json.loads(sys.argv[2]), step)
console.show(); console.close()
"""


def test_a_terminal_shows_the_table_in_place_of_the_lines_and_a_pipe_the_plain_lines(tmp_path):
    command = [sys.executable, "-c", SHOW, str(tmp_path / "run"), json.dumps(HINTED)]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert piped == (tmp_path / "run/logs/console.log").read_text() and "\x1b" not in piped
    assert [line.split()[0] for line in piped.splitlines()] == ["ready", "step", "step"]
    command[3] += "-2"
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(slave)
        shown = b"".join(iter(lambda: read(master), b"")).decode()
    assert process.returncode == 0
    assert "ready\r\n" in shown and "informative" in shown and "step 1/2" not in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is back


def read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # its other end is closed
        return b""


class Backends:
    def __init__(self):
        self.logged = []

    def log(self, data, step, backend):
        self.logged.append((step, data))


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create()
    return folder


def test_a_step_goes_to_the_file_the_backends_and_the_console(folder):
    backends = Backends()
    StepReporter(backends, folder, 2).log(HINTED, 1)
    assert backends.logged == [(1, HINTED)]
    assert [json.loads(line)["step"] for line in folder.metrics.read_text().splitlines()] == [1]
    line = folder.console.read_text()
    assert line.startswith("step 1/2     9.8 s  ") and line.endswith("  0:00:10 left\n")


def test_samples_reach_wandb_as_a_table_with_a_row_a_response(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    shared = {"extracted": "2", "reason": "right", "trains": True, "reward": 1.0}
    sample = {
        "problem_id": "p",
        "problem": "1 + 1",
        "rounds": [{"hint": ""}, {"hint": "Add."}],
        "responses": [
            {"round": 0, "level": 0, "response": "3", "score": "nan", **shared},
            {"round": 1, "level": 2, "response": "2", "score": 1.0, **shared},
        ],
    }
    tracking = Backends()
    tracking.logger = {"wandb": wandb}
    with wandb.init(project="p", dir=tmp_path):
        StepReporter(tracking, None, 2).log_samples([sample], 1)
        StepReporter(tracking, None, 2).log_samples([], 2)
    wandb.teardown()  # it would leave a process
    [file] = tmp_path.glob("wandb/offline-run-*/files/media/table/train/samples_*.json")
    table = json.loads(file.read_text())
    rows = [dict(zip(table["columns"], each, strict=True)) for each in table["data"]]
    assert [each["hint"] for each in rows] == ["", "Add."]
    assert math.isnan(rows[0]["score"]) and rows[1]["score"] == 1.0


def test_the_close_of_a_run_tells_its_first_and_its_last_validation(folder):
    for step in (0, 1, 2):
        folder.append_metrics(step, {"val-core/a/acc/mean@4": step / 4})
    assert closing_lines(folder) == [
        "  step 0, without hints, a: 0.0 %",
        "  step 2, without hints, a: 50.0 %",
        f"  everything is in {folder.root}",
        f"  its page: hint report serve {folder.root}",
    ]
