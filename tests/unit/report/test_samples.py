"""What the command shows of samples.jsonl: few lines each, and nothing that acts on a terminal."""

import json

import pytest
from ends import code_of

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.report.samples import sample_lines

ANSWER = {
    "attempt": 1, "level": 1, "rows": [0, 3], "trains": True, "score": 1.0, "reward": 1.0,
    "reason": "correct", "basis": "number", "extracted": "5 apples", "ignored": "apples",
    "why": ["ignored"],
    "response": "so it is\n\\boxed{5 apples}",
}  # fmt: skip
ROW = {
    "step": 3, "why": ["random", "ignored"], "problem_id": "p7", "uid": "u", "accepted_level": 1,
    "kind": "maths", "data_source": "s", "problem": "How many?", "answer": "5", "left_out": 1,
    "rounds": [
        {"level": 0, "hint_status": "none", "hint": "", "leaks": False},
        {"level": 1, "hint_status": "cut", "hint": "it is 5", "leaks": True},
    ],
    "responses": [ANSWER],
}  # fmt: skip


def write(folder, *rows, end=""):
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
    return folder


def test_a_sample_is_a_few_lines_with_what_was_ignored(tmp_path, capsys):
    many = {**ROW, "step": 4, "why": ["random"], "responses": [ANSWER] * 5}
    assert (
        main(["samples", str(write(tmp_path, ROW, many, end='{"step": 5')), "--why", "ignored"])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        "step 3  p7  why: random, ignored  gold: 5",
        "  problem: How many?",
        "  hint 1 cut (holds the answer): it is 5",
        "  level 1, 2 x correct, by number, reward 1.0, trains, ignored: apples",
        "    extracted: 5 apples",
        r"    response: so it is \boxed{5 apples}",
        "",
        "1 of 1 samples shown; by reason: random 2, ignored 1",
    ]
    shown = sample_lines(tmp_path, step=4)
    assert shown[-3] == "  and 3 other verdicts"  # 5 + 1 left out - 3 shown


def test_the_newest_samples_are_shown_when_there_are_more_than_asked_for(tmp_path):
    folder = write(tmp_path, *({**ROW, "step": step} for step in range(1, 31)))
    lines = sample_lines(folder, limit=2)
    assert [line.split()[1] for line in lines if line.startswith("step")] == ["29", "30"]
    assert lines[-1].startswith("2 of 30 samples shown")


@pytest.mark.parametrize(
    "text", ["\x1b[2Jgone", "\x9b31m", "a\u202eb", "\0", "\ud800", "\x07" * 10_000, "\r\n\u2028x"]
)
def test_what_a_model_wrote_cannot_act_on_the_terminal(tmp_path, text):
    verdict = {**ANSWER, "extracted": text, "ignored": text, "response": text}
    hints = [{"level": 1, "hint_status": "ok", "hint": text, "leaks": False}]
    row = {**ROW, "problem": text, "answer": text, "rounds": hints, "responses": [verdict]}
    for line in sample_lines(write(tmp_path, {**row, "problem_id": text})):
        assert line.isprintable()
        line.encode("utf-8")
        assert len(line) < 4000


def test_what_is_not_there_is_said_with_what_is(tmp_path, capsys):
    with pytest.raises(DataError, match=r"samples\.jsonl is missing: .*prompts_per_step above 0"):
        sample_lines(tmp_path)
    assert code_of(main, ["samples", str(write(tmp_path, ROW)), "--step", "9"]) == 2
    assert "has no such sample; at that step it has: nothing" in capsys.readouterr().err
    with pytest.raises(DataError, match="it has: ignored 1, random 1"):
        sample_lines(tmp_path, why="leaked")
    with pytest.raises(DataError, match=r"a line that is not a sample: KeyError\('problem_id'\)"):
        sample_lines(write(tmp_path, {"step": 1, "why": []}))
    with pytest.raises(SystemExit):
        main(["samples", str(tmp_path), "--why", "boredom"])


def test_of_several_turns_one_response_of_each_is_shown(tmp_path):
    turns = [("bare", "wrong"), ("feedback", "not_graded"), ("refine", "correct")]
    rounds = [{**ROW["rounds"][0], "prompt": prompt} for prompt, _ in turns]
    # Two entries of each round: the first one stands for it.
    responses = [
        {**ANSWER, "round": number, "level": 0, "reason": reason, "response": f"{number}{entry}"}
        for number, (_, reason) in enumerate(turns)
        for entry in "ab"
    ]
    folder = write(tmp_path, {**ROW, "rounds": rounds, "responses": responses, "left_out": 0})
    lines = sample_lines(folder)
    heads = [line.split(",")[:2] for line in lines if line.startswith("  ") and " x " in line]
    assert heads == [
        ["  bare", " 2 x wrong"], ["  feedback", " 2 x not graded"], ["  refine", " 2 x correct"]
    ]  # fmt: skip
    assert [line[-2:] for line in lines if "response:" in line] == ["0a", "1a", "2a"]
    assert "  and 3 other verdicts" in lines
