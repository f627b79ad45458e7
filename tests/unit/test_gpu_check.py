"""The check of a GPU machine: every part reports, none hides another, nothing is left running."""

import json
import time

import psutil
import pytest

from recipe.study import gpu_check

pytestmark = pytest.mark.slow


def fails(check):
    raise gpu_check.CommandError("exit code 1: it broke | here")


def is_elsewhere(check):
    raise gpu_check.NotHereError("needs two GPUs")


def test_a_part_that_fails_hides_no_other_and_decides_the_exit_code(monkeypatch, tmp_path, capsys):
    given = {
        "first": fails,
        "second": is_elsewhere,
        "third": lambda check: {"mean": 0.000012345, "device": check.device},
    }
    monkeypatch.setattr(gpu_check, "PARTS", given)
    assert gpu_check.main(["--device", "cpu", "--out", str(tmp_path), "--only", ",".join(given)])
    told = capsys.readouterr().out
    assert "| first | FAILED | 0 | CommandError: exit code 1: it broke \\| here |" in told
    assert "| second | not here | 0 | needs two GPUs |" in told
    assert "| third | ok | 0 | mean 1.23e-05; device cpu |" in told
    # A part that is run again replaces its result and no other.
    given["first"] = lambda check: {"number": 2}
    assert gpu_check.main(["--device", "cpu", "--out", str(tmp_path), "--only", "first"]) == 0
    written = json.loads((tmp_path / "gpu_check.json").read_text())
    assert [each["result"] for each in written.values()] == ["ok", "not here", "ok"]


@pytest.mark.parametrize(("steps", "is_whole"), [([0, 1, 2, 3], True), ([1, 3], False)])
def test_a_resumed_run_has_every_step_once(steps, is_whole, monkeypatch, tmp_path):
    (tmp_path / "resume/checkpoints/global_step_2").mkdir(parents=True)
    (tmp_path / "resume/checkpoints/global_step_2/COMPLETE").touch()
    rows = [{"step": step} for step in steps]
    monkeypatch.setattr(gpu_check.Check, "run", lambda *_, **__: rows)
    monkeypatch.setattr(gpu_check, "_as_reference", lambda *_: {})
    check = gpu_check.Check("cpu", tmp_path, time.monotonic() + 60)
    if is_whole:
        assert gpu_check.resume(check) == {}
    else:
        with pytest.raises(gpu_check.CommandError, match="after resuming"):
            gpu_check.resume(check)


def test_an_unknown_part_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        gpu_check.main(["--only", "versions,speed"])
    assert "unknown part speed; choose from versions, reference" in capsys.readouterr().err


def test_a_command_that_fails_is_named_by_its_last_error(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import sys; print('Error: this one'); print('bye'); sys.exit(3)")
    check = gpu_check.Check("cpu", tmp_path, time.monotonic() + 60)
    with pytest.raises(gpu_check.CommandError, match="exit code 3: Error: this one"):
        check.run("part", script=str(script))


def test_a_command_beyond_its_limit_ends_with_all_it_started(tmp_path):
    # The child has a session of its own, as Ray's processes have.
    script = tmp_path / "program.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "child = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "other = subprocess.Popen(child, start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(other.pid)); time.sleep(600)"
    )
    check = gpu_check.Check("cpu", tmp_path, time.monotonic() + 3)
    with pytest.raises(gpu_check.CommandError, match="no time was left"):
        check.run("part", script=str(script))
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_equal_prompts_are_counted_without_their_times(tmp_path):
    def write(name, tokens, seconds):
        (tmp_path / name).mkdir()
        lines = [
            {"step": 1, "problem_id": each, "rounds": [{"tokens": number, "seconds": seconds}]}
            for each, number in tokens.items()
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / name / "records.jsonl").write_text(text)

    write("reference", {"p": 1, "q": 2}, seconds=0.1)
    write("resume", {"p": 1, "q": 3}, seconds=0.9)
    rows = [{gpu_check._MEAN: 0.0, gpu_check._LARGEST: 0.0, "timing_s/step": 1.0}]
    cuda = gpu_check.Check("cuda", tmp_path, time.monotonic() + 60)
    assert gpu_check._as_reference(cuda, "resume", rows)["equal prompts"] == "1 of 2"
    cpu = gpu_check.Check("cpu", tmp_path, time.monotonic() + 60)
    with pytest.raises(gpu_check.CommandError, match="differs from the reference"):
        gpu_check._as_reference(cpu, "resume", rows)
