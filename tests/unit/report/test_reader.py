"""What a run wrote is read in one place: finished, at work, killed or damaged."""

import json

import pytest
from page_runs import metrics, write_run

from recipe.run.errors import DataError
from recipe.study.report_command import main
from recipe.study.runs import compare_records, read_run


def test_a_run_has_its_numbers_settings_machine_and_end(tmp_path):
    folder = write_run(tmp_path / "run", rows=[metrics(1), metrics(2, 0.5)], method="sage")
    (folder / "machine.json").write_text('{"version": {"torch": "2"}}')
    (folder / "logs").mkdir()
    (folder / "logs/fatal.json").write_text('{"error": "the disk is full \\ud83d\\ude00"}')
    run = read_run(folder)
    assert (run.name, run.method, run.variant, run.last_step) == ("run", "sage", "sage", 2)
    assert run.setting("hint.max_level") == 3 and run.setting("hint.none.such") is None
    assert (run.tokens(), run.tokens(1), run.minutes(), run.levels) == (2000.0, 1000.0, 0.1, {0, 1})
    assert run.curve("tiny/hard") == {2: 0.5}
    assert run.machine == {"version": {"torch": "2"}} and run.failure == "the disk is full 😀"
    # What a kill left is no row; numbers that are none are left out.
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 3, "hint/prompts": NaN, "a": 1e999}\n{"step": 4')
    assert read_run(folder).rows[2:] == [{"step": 3}] and list(run.samples()) == []


def test_records_are_compared_by_step_and_problem_without_their_times(tmp_path):
    def write(name, *rows):
        (tmp_path / name).mkdir()
        lines = [
            {
                "step": step,
                "problem_id": problem,
                "rounds": [{"tokens": tokens, "seconds": seconds}],
            }
            for step, problem, tokens, seconds in rows
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / name / "records.jsonl").write_text(text)
        return tmp_path / name

    first = write("a", (1, "p", 10, 0.1), (1, "q", 20, 0.1), (2, "p", 30, 0.1))
    # Another order, other times, one other number of tokens, one step fewer and one more.
    second = write("b", (1, "q", 20, 0.9), (1, "p", 10, 0.2), (2, "p", 31, 0.1), (3, "p", 1, 0.1))
    same = compare_records(first, second)
    assert same == (3, 2, 2)
    with pytest.raises(DataError, match="no step in common"):
        compare_records(first, write("c", (9, "p", 10, 0.1)))


def test_the_report_says_whether_two_runs_sampled_the_same(tmp_path, capsys):
    for name, tokens, gap in (("a", 10, 2e-7), ("b", 10, 4e-7), ("c", 11, 4e-7)):
        (tmp_path / name).mkdir()
        record = {"step": 1, "problem_id": "p", "rounds": [{"tokens": tokens}]}
        (tmp_path / name / "records.jsonl").write_text(json.dumps(record) + "\n")
        gaps = {f"training/rollout_probs_diff_{which}": gap for which in ("mean", "max")}
        row = {"step": 1, **gaps}
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["same", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    told = capsys.readouterr().out
    assert "1 of 1 prompts of the steps that both have" in told
    assert "b: trainer and vLLM differ by 4.0e-07 in the mean" in told
    assert main(["same", str(tmp_path / "a"), str(tmp_path / "c")]) == 1
    assert "the first that differs is of step 1" in capsys.readouterr().out
