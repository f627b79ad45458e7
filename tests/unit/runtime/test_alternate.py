"""The driver of two policies: what is made, against whom, again, and not again."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from processes import HEARS_SIGINT, is_alive, wait_for

from recipe.run.errors import HintError, StallError
from recipe.study import alternate
from recipe.study.alternate import Alternation, phases

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "alternate_programs"
SERVE = [sys.executable, str(PROGRAMS / "server.py")]
SOLVER_4, GUIDE_2 = "solver/checkpoints/global_step_4", "guide/checkpoints/global_step_2"
WHOLE = {
    "solver": {1: "base", 2: "base", 3: "guide global_step_1", 4: "guide global_step_1"},
    "guide": {1: "solver global_step_2", 2: "solver global_step_4"},
}


def alternation(root, *settings, num_steps=6, fault="", start_s=30.0):
    config = OmegaConf.create(
        {
            "trainer": {
                "experiment_name": "two",
                "eval_only": "trainer.eval_only=true" in settings,
            },
            "hint": {"run_dir": str(root), "watchdog": {"start_s": start_s, "rollout_s": 30.0}},
            "data": {},
            "actor_rollout_ref": {
                "model": {"path": "some/base"},
                "rollout": {"dtype": "float32", "engine_kwargs": {"vllm": {"fault": fault}}},
            },
        }
    )
    planned = phases(2, 1, num_steps)
    return Alternation(config, settings, "hint.mlmt", planned, "", PROGRAMS)


@pytest.fixture(autouse=True)
def served_by_the_fake(monkeypatch):
    monkeypatch.setattr(alternate, "SERVE", SERVE)


def rows(root, role):
    return [json.loads(line) for line in (root / role / "metrics.jsonl").read_text().splitlines()]


def partners(root):
    """Role -> step -> the weights that answered at it."""
    return {role: {row["step"]: row["partner"] for row in rows(root, role)} for role in WHOLE}


def assert_nothing_is_left(root):
    pids = [path.read_text() for path in root.glob("*/pid")]
    pids += re.findall(r"^pid (\d+)$", (root / "server.log").read_text(), re.MULTILINE)
    assert pids
    wait_for(lambda: not any(is_alive(int(pid)) for pid in pids))


def test_each_role_trains_against_the_other_ones_weights_and_a_longer_run_goes_on(tmp_path, capsys):
    alternation(tmp_path, "x=1").run()
    said = capsys.readouterr().out.splitlines()
    assert partners(tmp_path) == WHOLE
    assert said == [
        *("steps 1 to 2 of solver: guide-0 answers", "steps 1 to 1 of guide: solver-2 answers"),
        *("steps 3 to 4 of solver: guide-1 answers", "steps 2 to 2 of guide: solver-4 answers"),
    ]
    weights = [tmp_path / f"{at}/merged" for at in (SOLVER_4, GUIDE_2)]
    made = [path.stat().st_mtime_ns for path in weights]
    # What is done is not done again, weights that are missing are.
    shutil.rmtree(weights[1])
    alternation(tmp_path, num_steps=8).run()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "steps 5 to 6 of solver: guide-2 answers"
    assert [row["step"] for row in rows(tmp_path, "solver")] == [1, 2, 3, 4, 5, 6]
    again = [path.stat().st_mtime_ns for path in weights]
    assert again[0] == made[0] and again[1] > made[1]


def test_a_phase_is_main_hint_with_one_role_at_the_endpoint(tmp_path):
    of_stage1 = ("hint.mlmt.stage1_steps=2", "hint.mlmt.beta2=0.25")
    alternation(tmp_path, *of_stage1, num_steps=3).run()
    solver, guide = (rows(tmp_path, role)[-1]["given"] for role in WHOLE)
    shared = {"hint.mlmt.t_low": "0", "hint.mlmt.t_high": "0"}
    # Stage I is the solver's; what is cached of one partner's answers answers for no other one.
    expected = shared | {
        **{"hint.mlmt.guide": "teacher", "hint.mlmt.train_guide": "false"},
        **{"hint.mlmt.stage1_steps": "2", "hint.mlmt.beta2": "0.25"},
        "hint.run_dir": str(tmp_path / "solver"),
        "hint.teacher.cache_dir": str(tmp_path / "answers/guide-0"),
    }
    assert solver.items() >= expected.items()
    expected = shared | {
        **{"hint.mlmt.solver": "teacher", "hint.mlmt.train_solver": "false"},
        **{"hint.mlmt.stage1_steps": "0", "hint.mlmt.beta2": "0"},
        **{"hint.run_dir": str(tmp_path / "guide")},
        "hint.teacher.cache_dir": str(tmp_path / "answers/solver-2"),
    }
    assert guide.items() >= expected.items()


def test_a_run_that_failed_goes_on_where_it_was_and_its_pair_is_evaluated(tmp_path):
    with pytest.raises(HintError, match=r"main_hint\.py ended with exit code 3"):
        alternation(tmp_path, "fail=guide-2").run()
    alternation(tmp_path).run()
    assert partners(tmp_path) == WHOLE
    alternation(tmp_path, "trainer.eval_only=true").run()
    pair = json.loads((tmp_path / "solver-4-guide-2/pair.json").read_text())
    assert pair == ["solver global_step_4", "guide global_step_2"]


@pytest.mark.parametrize(
    ("fault", "start_s", "error", "says"),
    [
        ("deaf", 5.0, StallError, r"guide-0 did not answer within .*start_s=5 s"),
        (
            "mortal",
            30.0,
            HintError,
            r"the server of the partner ended with exit code 5: see server",
        ),
    ],
)
def test_a_partner_that_is_not_there_ends_the_run_with_its_name(
    tmp_path, fault, start_s, error, says
):
    # The training hangs: it is the driver that looks after the server.
    with pytest.raises(error, match=says):
        alternation(tmp_path, "hang=solver-1", fault=fault, start_s=start_s).run()
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_process_and_goes_on(tmp_path, number):
    code = (
        "import sys; from pathlib import Path\n"
        "sys.path[:0] = sys.argv[2:]; import test_alternate as t\n"
        "t.alternate.SERVE = t.SERVE\n"
        "t.alternation(Path(sys.argv[1]), 'hang=guide-1').run()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), *map(str, Path(__file__).parents[:2])]
    with subprocess.Popen(command, cwd=ROOT, preexec_fn=HEARS_SIGINT) as process:
        wait_for((tmp_path / "guide/hangs").exists)
        process.send_signal(number)
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()
    alternation(tmp_path).run()  # at once: it waits for what is still ending
    assert partners(tmp_path) == WHOLE
    assert_nothing_is_left(tmp_path)
