"""The check of a GPU machine: every part reports, none hides another, nothing is left running."""

import json
import time

import psutil
import pytest

from recipe.run.errors import HintError
from recipe.study import gpu_check

pytestmark = pytest.mark.slow


def check_in(folder, device="cpu", limit_s=60):
    return gpu_check.Check(device, folder, time.monotonic() + limit_s)


def test_a_part_that_fails_hides_no_other_and_decides_the_exit_code(monkeypatch, tmp_path, capsys):
    results = {
        "reference": HintError("exit code 1: it broke | here"),
        "fp32": {"mean": 0.000012345, "device": "x"},
    }

    def numbers_of(name, check):
        if isinstance(results[name], HintError):
            raise results[name]
        return results[name]

    monkeypatch.setattr(gpu_check, "numbers_of", numbers_of)
    command = ["--device", "cpu", "--out", str(tmp_path), "--only"]
    assert gpu_check.main([*command, "reference,fp32"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "| reference | FAILED | 0 | HintError: exit code 1: it broke \\| here |" in told
    assert "| fp32 | ok | 0 | mean 1.23e-05; device x |" in told
    # A part that is run again replaces its result and no other.
    results["reference"] = {"number": 2}
    assert gpu_check.main([*command, "reference"]) == 0
    written = json.loads((tmp_path / "gpu_check.json").read_text())
    assert [each["result"] for each in written.values()] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("name", "rows", "tokens", "says"),
    [
        ("resume", [0, 1, 2, 3], 2, None),
        ("resume", [1, 3], 2, "not each step once"),
        ("resume", [1, 2, 3], 3, "differs from the reference at step 1"),
        ("fp32", [1], 2, "the weights differ"),
        ("bf16", [1], 2, None),
        ("sleep", [1], 2, "does not sleep"),
    ],
)
def test_a_part_shows_what_it_must(name, rows, tokens, says, monkeypatch, tmp_path):
    for folder, count in (("reference", 2), (name, tokens)):
        (tmp_path / folder).mkdir()
        line = {"step": 1, "problem_id": "p", "rounds": [{"tokens": count, "seconds": count}]}
        line["rounds"][0]["seconds"] = time.time()  # times do not count
        (tmp_path / folder / "records.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "resume/checkpoints/global_step_2").mkdir(parents=True)
    (tmp_path / "resume/checkpoints/global_step_2/COMPLETE").touch()
    numbers = {"mean": 1e-4, "max": 1e-3}
    named = {f"training/rollout_probs_diff_{key}": value for key, value in numbers.items()}
    made = [{"step": step, "timing_s/step": 1.0, **named} for step in rows]
    monkeypatch.setattr(gpu_check.Check, "run", lambda *_, **__: made)
    result = gpu_check.run_part(name, check_in(tmp_path))
    assert result["result"] == (
        "ok" if says is None else "not here" if name == "sleep" else "FAILED"
    )
    assert says is None or says in result["reason"]


def test_an_unknown_part_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        gpu_check.main(["--only", "versions,speed"])
    assert "unknown part speed; choose from versions, reference" in capsys.readouterr().err


def test_a_command_that_fails_is_named_by_its_last_error(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import sys; print('Error: this one'); print('bye'); sys.exit(3)")
    with pytest.raises(HintError, match="exit code 3: Error: this one"):
        check_in(tmp_path).run("part", script=str(script))


def test_a_command_beyond_its_limit_ends_with_all_it_started(tmp_path):
    # The child has a session of its own, as Ray's processes have.
    script = tmp_path / "program.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "child = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "other = subprocess.Popen(child, start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(other.pid)); time.sleep(600)"
    )
    with pytest.raises(HintError, match="no time was left"):
        check_in(tmp_path, limit_s=3).run("part", script=str(script))
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
