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

from recipe.run.errors import ConfigError, HintError, StallError
from recipe.study import alternate
from recipe.study.alternate import Alternation, ServerOptions, phases

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "alternate_programs"
EVALUATES = "trainer.eval_only=true"
LIMITS = ("start_s", "answer_s", "rollout_s", "save_s")
SERVE = [sys.executable, str(PROGRAMS / "server.py")]


def alternation(root, *settings, server_options=None, t_low=2, t_high=1, num_steps=6, **limits):
    config = OmegaConf.create(
        {
            "trainer": {
                "experiment_name": "two",
                "eval_only": "trainer.eval_only=true" in settings,
            },
            "hint": {
                "run_dir": str(root),
                "mlmt": {"t_low": t_low, "t_high": t_high},
                "watchdog": {**dict.fromkeys(LIMITS, 30.0), **limits},
            },
            "data": {},
            "actor_rollout_ref": {
                "model": {"path": "some/base"},
                "rollout": {"dtype": "float32", "engine_kwargs": {}},
            },
        }
    )
    planned = phases(t_low, t_high, num_steps)
    return Alternation(
        config, settings, "hint.mlmt", planned, server_options or ServerOptions(), PROGRAMS
    )


@pytest.fixture(autouse=True)
def served_by_the_fake(monkeypatch):
    monkeypatch.setattr(alternate, "SERVE", SERVE)
    monkeypatch.setattr(alternate, "_ASK_EVERY_S", 0.2)


def rows(root, role):
    return [json.loads(line) for line in (root / role / "metrics.jsonl").read_text().splitlines()]


def partners(root, role):
    """Step -> the weights that answered at it."""
    return {row["step"]: row["partner"] for row in rows(root, role)}


WHOLE = {
    "solver": {1: "base", 2: "base", 3: "guide global_step_1", 4: "guide global_step_1"},
    "guide": {1: "solver global_step_2", 2: "solver global_step_4"},
}


def test_each_role_trains_against_the_other_ones_weights_of_the_phase_before(tmp_path, capsys):
    alternation(tmp_path, "x=1").run()
    said = capsys.readouterr().out.splitlines()
    assert {role: partners(tmp_path, role) for role in WHOLE} == WHOLE
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == ["guide-2", "solver-4"]
    assert said == [
        *("train the solver, steps 1 to 2: guide-0 answers", "export solver-2"),
        *("train the guide, steps 1 to 1: solver-2 answers", "export guide-1"),
        *("train the solver, steps 3 to 4: guide-1 answers", "export solver-4"),
        *("train the guide, steps 2 to 2: solver-4 answers", "export guide-2"),
    ]
    summary = json.loads((tmp_path / "phases.json").read_text())
    assert summary["schedule"] == {"t_low": 2, "t_high": 1}
    assert [(row["role"], row["step"], row["served"]) for row in summary["phases"]] == [
        *(("solver", 2, "guide-0"), ("guide", 1, "solver-2")),
        *(("solver", 4, "guide-1"), ("guide", 2, "solver-4")),
    ]
    assert summary["phases"][0]["sha256"] is None  # the base is no folder here
    assert len({row["sha256"] for row in summary["phases"]}) == 4


def test_a_phase_is_main_hint_with_one_role_at_the_endpoint(tmp_path):
    of_stage1 = ("hint.mlmt.beta2=0.25", "hint.mlmt.adaptive_beta2=true")
    alternation(tmp_path, "hint.mlmt.stage1_steps=2", *of_stage1, num_steps=3).run()
    solver, guide = (rows(tmp_path, role)[-1]["given"] for role in ("solver", "guide"))
    assert (solver["hint.mlmt.guide"], solver["hint.mlmt.train_guide"]) == ("teacher", "false")
    assert (guide["hint.mlmt.solver"], guide["hint.mlmt.train_solver"]) == ("teacher", "false")
    # Stage I is the solver's; a place in the data, an optimizer and a reference for each.
    assert (solver["hint.mlmt.stage1_steps"], guide["hint.mlmt.stage1_steps"]) == ("2", "0")
    assert (solver["hint.mlmt.beta2"], guide["hint.mlmt.beta2"]) == ("0.25", "0")
    assert guide["hint.mlmt.adaptive_beta2"] == "false"
    assert (solver["hint.run_dir"], guide["hint.run_dir"]) == (
        *(str(tmp_path / "solver"), str(tmp_path / "guide")),
    )
    for given in (solver, guide):
        assert (given["hint.mlmt.t_low"], given["hint.mlmt.t_high"]) == ("0", "0")
    # What is cached of one partner's answers never answers for another one.
    assert solver["hint.teacher.cache_dir"] == str(tmp_path / "answers/guide-0")
    assert guide["hint.teacher.cache_dir"] == str(tmp_path / "answers/solver-2")


@pytest.mark.parametrize("at", ["solver-2", "guide-2"])
def test_a_run_that_failed_in_its_first_or_its_last_phase_goes_on_there(tmp_path, at):
    with pytest.raises(HintError, match=r"main_hint\.py ended with exit code 3"):
        alternation(tmp_path, f"fail={at}").run()
    alternation(tmp_path).run()
    assert {role: partners(tmp_path, role) for role in WHOLE} == WHOLE


def test_what_is_done_is_not_done_again_and_a_longer_run_goes_on(tmp_path, capsys):
    alternation(tmp_path).run()
    before = (tmp_path / "solver/metrics.jsonl").read_text()
    capsys.readouterr()
    alternation(tmp_path).run()
    assert capsys.readouterr().out == ""
    alternation(tmp_path, num_steps=8).run()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "train the solver, steps 5 to 6: guide-2 answers"
    assert (tmp_path / "solver/metrics.jsonl").read_text().startswith(before)


def test_exports_that_a_kill_left_in_pieces_are_made_again(tmp_path):
    alternation(tmp_path, num_steps=3).run()
    shutil.rmtree(tmp_path / "exports/solver-2")
    for draft in (".solver-2.123", ".solver-1.stale"):
        (tmp_path / "exports" / draft).mkdir()
    alternation(tmp_path, num_steps=3).run()
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == ["guide-1", "solver-2"]


def test_another_schedule_in_the_folder_is_refused(tmp_path):
    alternation(tmp_path, num_steps=3).run()
    with pytest.raises(ConfigError, match=r"'t_low': 2, .*now .*'t_low': 1.*give the old values"):
        alternation(tmp_path, t_low=1).run()


def test_a_run_without_checkpoints_ends_with_what_left_nothing(tmp_path):
    with pytest.raises(HintError, match="the solver has no checkpoint of step 2"):
        alternation(tmp_path, "save=never").run()


def test_a_pair_is_evaluated_by_its_own_weights(tmp_path):
    alternation(tmp_path).run()
    alternation(tmp_path, EVALUATES).run()
    pair = json.loads((tmp_path / "solver-4-guide-2/pair.json").read_text())
    assert pair == ["solver global_step_4", "guide global_step_2"]


@pytest.mark.parametrize(
    ("fault", "limits", "error", "says"),
    [
        ("deaf", {"start_s": 5.0}, StallError, r"guide-0 did not answer within .*start_s=5 s"),
        ("tired", {"answer_s": 2.0}, StallError, r"guide-0 did not answer within .*answer_s=2 s"),
        ("mortal", {}, HintError, r"the server of guide-0 ended with exit code 5: see server\.log"),
    ],
)
def test_a_partner_that_does_not_answer_ends_the_run_with_its_name(
    tmp_path, fault, limits, error, says
):
    # The training hangs: it is the driver that looks after the server.
    broken = alternation(
        *(tmp_path, "hang=solver-1"),
        server_options=ServerOptions(serve_args=f"--fault {fault}"),
        **limits,
    )
    with pytest.raises(error, match=says):
        broken.run()
    assert_nothing_is_left(tmp_path)
    alternation(tmp_path, num_steps=3).run()


def test_one_command_at_a_time_works_in_a_folder(tmp_path):
    from recipe.run.whole_file import claimed

    tmp_path.joinpath("x").mkdir()
    with claimed(tmp_path / ".lock"), pytest.raises(ConfigError, match="in use by another"):
        alternation(tmp_path).run()


def test_a_port_that_is_taken_is_refused():
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port {port} cannot be served at"):
            ServerOptions(port=port).free_port()
    assert ServerOptions(port=port).free_port() == port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
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
    assert {role: partners(tmp_path, role) for role in WHOLE} == WHOLE
    assert_nothing_is_left(tmp_path)


def assert_nothing_is_left(root):
    pids = [path.read_text() for path in root.glob("*/pid")]
    pids += re.findall(r"^pid (\d+)$", (root / "server.log").read_text(), re.MULTILINE)
    assert pids
    wait_for(lambda: not any(is_alive(int(pid)) for pid in pids))
