"""Two runs compared prompt by prompt."""

import json

import pytest

from recipe.hint import main_report
from recipe.run.errors import DataError
from recipe.study.report.same import compare_records


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
    assert (same.num_prompts, same.num_equal, same.first_step) == (3, 2, 2)
    assert (same.num_steps, same.of_steps) == (2, 3)
    with pytest.raises(DataError, match="no step in common"):
        compare_records(first, write("c", (9, "p", 10, 0.1)))
    # What only one of them sampled is not equal: p of both, q of the one, r and s of the other.
    third = write("d", (1, "p", 10, 0.1), (1, "r", 20, 0.1), (1, "s", 20, 0.1))
    same = compare_records(first, third)
    assert (same.num_prompts, same.num_equal, same.first_step) == (4, 1, 1)
    # A problem twice in a step, in either order.
    twice = write("e", (1, "p", 10, 0.1), (1, "p", 11, 0.1))
    other = write("f", (1, "p", 11, 0.1), (1, "p", 10, 0.1))
    once = write("g", (1, "p", 11, 0.1))
    assert compare_records(twice, other).num_equal == 1
    assert compare_records(twice, once).num_equal == 0


def test_the_report_says_whether_two_runs_sampled_the_same(tmp_path, capsys):
    for name, tokens, gap in (("a", 10, 2e-7), ("b", 10, 4e-7), ("c", 11, 4e-7)):
        (tmp_path / name).mkdir()
        record = {"step": 1, "problem_id": "p", "rounds": [{"tokens": tokens}]}
        (tmp_path / name / "records.jsonl").write_text(json.dumps(record) + "\n")
        gaps = {f"training/rollout_probs_diff_{which}": gap for which in ("mean", "max")}
        row = {"step": 1, **gaps}
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    assert main_report.main(["same", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    told = capsys.readouterr().out
    assert "1 of 1 prompts have equal levels, tokens and verdicts" in told
    assert "b: trainer and vLLM differ by 4.0e-07 in the mean" in told
    assert main_report.main(["same", str(tmp_path / "a"), str(tmp_path / "c")]) == 1
    assert "the first that differs is of step 1" in capsys.readouterr().out
