"""The check of a GPU machine: every part reports, none hides another, nothing is left running."""

import json
import time

import psutil
import pytest

from recipe.hint import main_gpu_check
from recipe.study.bench import gpu_check
from recipe.study.bench.commands import CommandError, Finished, run_command

pytestmark = pytest.mark.slow


def parts(monkeypatch, **given):
    monkeypatch.setattr(main_gpu_check, "PARTS", given)


def fails(check):
    raise CommandError("exit code 1: it broke | here")


def is_elsewhere(check):
    raise gpu_check.NotHereError("needs two GPUs")


def test_a_part_that_fails_hides_no_other_and_decides_the_exit_code(monkeypatch, tmp_path, capsys):
    parts(
        monkeypatch,
        first=fails,
        second=is_elsewhere,
        third=lambda check: {"mean": 0.000012345, "device": check.device},
    )
    arguments = ["--device", "cpu", "--only", "first,second,third", "--out", str(tmp_path)]
    assert main_gpu_check.main(arguments) == 1
    told = capsys.readouterr().out
    assert "| first | FAILED | 0 | CommandError: exit code 1: it broke \\| here |" in told
    assert "| second | not here | 0 | needs two GPUs |" in told
    assert "| third | ok | 0 | mean 1.23e-05; device cpu |" in told
    written = json.loads((tmp_path / "gpu_check.json").read_text())
    assert [each["result"] for each in written.values()] == ["FAILED", "not here", "ok"]
    assert written["third"]["numbers"]["mean"] == 0.000012345


def test_a_part_that_is_run_anew_replaces_its_result_and_no_other(monkeypatch, tmp_path, capsys):
    def says(number):
        def part(check):
            left = check.folder / "first/records.jsonl"
            assert not left.exists()  # what the earlier run left would be resumed
            left.parent.mkdir()
            left.write_text("")
            return {"number": number}

        return part

    parts(monkeypatch, first=says(1), second=fails)
    assert (
        main_gpu_check.main(["--device", "cpu", "--only", "first,second", "--out", str(tmp_path)])
        == 1
    )
    parts(monkeypatch, first=says(2), second=fails)
    assert main_gpu_check.main(["--device", "cpu", "--only", "first", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr().out.rpartition("### GPU check")[2]
    assert "| first | ok | 0 | number 2 |" in told
    assert "| second | FAILED |" in told


def test_without_a_failure_the_exit_code_is_zero(monkeypatch, tmp_path):
    parts(monkeypatch, only=is_elsewhere)
    assert main_gpu_check.main(["--device", "cpu", "--only", "only", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("lines", "is_whole"),
    [
        # Step 2 was killed between its checkpoint and its line, which came back without times.
        ([{"step": 1, "timing_s/step": 2.0}, {"step": 2}, {"step": 3, "timing_s/step": 2.0}], True),
        ([{"step": 0}, {"step": 1}, {"step": 2}, {"step": 3}], True),  # 0: a validation
        ([{"step": 1}, {"step": 3}], False),
        ([{"step": 1}, {"step": 2}, {"step": 2}, {"step": 3}], False),
    ],
)
def test_a_resumed_run_has_every_step_once(lines, is_whole, monkeypatch, tmp_path):
    folder = tmp_path / "resume"
    (folder / "checkpoints/global_step_2").mkdir(parents=True)
    (folder / "checkpoints/global_step_2/COMPLETE").touch()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(gpu_check.Check, "run", lambda *_, **__: Finished(folder, 1.0))
    monkeypatch.setattr(gpu_check, "_as_reference", lambda check, run: {})
    check = gpu_check.Check("cpu", tmp_path, time.monotonic() + 60)
    if is_whole:
        assert gpu_check.resume(check) == {}
    else:
        with pytest.raises(CommandError, match="after resuming"):
            gpu_check.resume(check)


def test_an_unknown_part_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        main_gpu_check.main(["--only", "versions,speed"])
    assert "unknown part speed; choose from versions, reference" in capsys.readouterr().err


def test_a_part_after_the_deadline_is_not_started(tmp_path):
    late = gpu_check.Check("cpu", tmp_path, time.monotonic() - 1)
    result = main_gpu_check.run_part("reference", late)
    assert (result["result"], result["reason"]) == (
        "FAILED",
        "CommandError: no time was left for it",
    )
    assert not (tmp_path / "reference").exists()


def test_a_command_that_fails_is_told_by_its_last_error(tmp_path):
    script = "import sys; print('Error: this one'); print('bye'); sys.exit(3)"
    with pytest.raises(CommandError, match=r"exit code 3: Error: this one \(.*console.txt\)"):
        run_command(["-c", script], tmp_path, 60)


def test_a_command_beyond_its_limit_ends_with_all_it_started(tmp_path):
    # The child has a session of its own, as Ray's processes have.
    child = "import time; time.sleep(600)"
    script = (
        "import subprocess, sys, time\n"
        f"other = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "open('PLACE', 'w').write(str(other.pid)); time.sleep(600)"
    ).replace("PLACE", str(tmp_path / "pid"))
    with pytest.raises(CommandError, match="-c did not end within 3 s"):
        run_command(["-c", script], tmp_path, 3)
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_command_is_killed_once_its_condition_holds(tmp_path):
    mark = tmp_path / "mark"
    script = f"open({str(mark)!r}, 'w').close(); import time; time.sleep(600)"
    done = run_command(["-c", script], tmp_path, 60, until=mark.exists)
    assert done.folder == tmp_path
