"""The check of a GPU machine: every part reports, none hides another, nothing is left running."""

import json
import sys
import time

import pytest

from recipe.run.errors import HintError
from recipe.study import gpu_check

pytestmark = pytest.mark.slow


def test_a_part_that_fails_hides_no_other_and_decides_the_exit_code(monkeypatch, tmp_path, capsys):
    def run(arguments, env, folder, limit_s):
        if folder.name == "reference":
            raise HintError("exit code 1: it broke | here")

    monkeypatch.setattr(gpu_check, "run", run)
    numbers = {"mean": 0.000012345, "device": "x"}
    monkeypatch.setattr(gpu_check, "numbers_of", lambda *_: numbers)
    command = ["--device", "cpu", "--out", str(tmp_path / "out"), "--only"]
    assert gpu_check.main([*command, "reference,fp32"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "| reference | FAILED | 0 | HintError: exit code 1: it broke \\| here |" in told
    assert "| fp32 | ok | 0 | mean 1.23e-05; device x |" in told
    written = json.loads((tmp_path / "out/gpu_check.json").read_text())
    assert [each["result"] for each in written.values()] == ["FAILED", "ok"]


@pytest.mark.parametrize(
    ("name", "tokens", "says"),
    [
        ("resume", 2, None),
        ("resume", 3, "differs from the reference at step 1"),
        ("fp32", 2, "the weights differ"),
        ("bf16", 2, None),
        ("sleep", 2, "does not sleep"),
    ],
)
def test_a_part_shows_what_it_must(name, tokens, says, monkeypatch, tmp_path):
    numbers = {f"training/rollout_probs_diff_{key}": 1e-4 for key in ("mean", "max")}
    for folder, count in (("reference", 2), (name, tokens)):
        (tmp_path / folder).mkdir()
        line = {"step": 1, "problem_id": "p", "rounds": [{"tokens": count}]}
        (tmp_path / folder / "records.jsonl").write_text(json.dumps(line) + "\n")
        row = {"step": 1, "timing_s/step": 1.0, **numbers}
        (tmp_path / folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.setattr(gpu_check, "run", lambda *_: None)
    result = gpu_check.run_part(name, "cpu", tmp_path, time.monotonic() + 60)
    expected = "not here" if name == "sleep" else "FAILED" if says else "ok"
    assert result["result"] == expected and (says or "") in result.get("reason", "")


def test_an_unknown_part_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        gpu_check.main(["--only", "reference,speed"])
    assert "unknown part speed; choose from reference" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "limit_s", "says"),
    [
        ("import sys; print('Error: this one'); print('bye'); sys.exit(3)", 60, "3: Error: this"),
        ("import time; time.sleep(600)", 1, "no time was left"),
    ],
)
def test_a_command_that_fails_or_takes_too_long_is_told(tmp_path, program, limit_s, says):
    with pytest.raises(HintError, match=says):
        gpu_check.run([sys.executable, "-c", program], {}, tmp_path, limit_s)
