"""What a run wrote is read in one place."""

import json

from ends import code_of
from page_runs import metrics, write_run

from recipe.study.report_command import main
from recipe.study.runs import read_run


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


def write_records(folder, *rows):
    folder.mkdir()
    lines = [
        {"step": step, "problem_id": problem, "rounds": [{"tokens": tokens, "seconds": seconds}]}
        for step, problem, tokens, seconds in rows
    ]
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    gap = {"step": 1, "training/rollout_probs_diff_mean": 4e-7}
    (folder / "metrics.jsonl").write_text(json.dumps(gap) + "\n")
    return str(folder)


def test_the_report_says_whether_two_runs_sampled_the_same_whatever_the_times(tmp_path, capsys):
    first = write_records(tmp_path / "a", (1, "p", 10, 0.1), (1, "q", 20, 0.1), (2, "p", 30, 0.1))
    # Another order and other times; and one other number of tokens, and one step more.
    rows = [(1, "q", 20, 0.9), (1, "p", 10, 0.2), (2, "p", 30, 0.1)]
    assert main(["same", first, write_records(tmp_path / "b", *rows)]) == 0
    told = capsys.readouterr().out
    assert "3 of 3 prompts of the steps that both have" in told
    assert "b: trainer and vLLM differ by 4.0e-07 in the mean" in told
    rows[2:] = [(2, "p", 31, 0.1), (3, "p", 1, 0.1)]
    assert main(["same", first, write_records(tmp_path / "c", *rows)]) == 1
    told = capsys.readouterr().out
    assert "2 of 3 prompts" in told and "the first that differs is of step 2" in told
    assert code_of(main, ["same", first, write_records(tmp_path / "d", (9, "p", 1, 0.1))]) == 2
