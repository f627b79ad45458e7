"""The lines of the console: each kind of method is told what its user needs."""

import json

import pytest

from recipe.run.reporter import (
    StepReporter,
    closing_lines,
    describe,
)
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
TOLD = "first turn 25.0 % correct, last 34.4 %: +9.4 [-2.0, +21.0]"


def turns(prefix):
    return {f"{prefix}{name}": value for name, value in TURNS.items()}


def test_a_step_with_hints_tells_its_levels_and_what_they_brought():
    assert describe(HINTED, "step 3/45", "0:07 left") == [
        "step 3/45  9.8 s  (rollout 6.0 s, log-probs 1.0 s, update 2.5 s, sync 0.3 s)  0:07 left",
        "  reward 0.250   informative groups 5/8   hint levels 0:2 1:1 2:5   hints written 6/6   "
        "tokens 1000",
    ]


def test_a_step_of_a_method_without_hints_tells_of_none():
    _, *rest = describe(STEP, "step 3/45")
    assert rest == ["  reward 0.250   informative groups 5/8   tokens 1000"]


def test_a_step_of_a_method_with_turns_tells_what_the_last_turn_changes():
    _, *rest = describe(STEP | turns("turns/"), "step 3/45")
    assert rest == [f"  {TOLD}   informative groups 5/8   tokens 1000"]


def test_a_validation_is_told_by_its_source_and_with_turns_by_both_ends():
    shares = {"val-core/a/acc/mean@4": 11 / 32, "val-core/b/acc/mean@4": 0.5}
    assert describe(shares, "step 0/45") == [
        "  validation at step 0/45, a: 34.4 %",
        "  validation at step 0/45, b: 50.0 %",
    ]
    assert describe(shares | turns("val-turns/a/") | turns("val-turns/b/"), "step 0/45") == [
        f"  validation at step 0/45, a: {TOLD}",
        f"  validation at step 0/45, b: {TOLD}",
    ]


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
    first = folder.console.read_text().splitlines()[0]
    assert first.startswith("step 1/2  9.8 s  (") and first.endswith(")  0:00:10 left")


def test_the_close_of_a_run_tells_its_first_and_its_last_validation(folder):
    for step in (0, 1, 2):
        folder.append_metrics(step, {"val-core/a/acc/mean@4": step / 4})
    assert closing_lines(folder) == [
        "  step 0, without hints, a: 0.0 %",
        "  step 2, without hints, a: 50.0 %",
        f"  everything is in {folder.root}",
    ]
