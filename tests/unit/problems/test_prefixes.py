"""The command that makes prefixes of an evaluation's right responses."""

import json

import pyarrow.parquet as pq
import pytest

from recipe.hint import main_prepare
from recipe.problems.columns import Labels, make_row, read_problems, write_rows
from recipe.study.evaluation.responses import file_sha256
from recipe.study.evaluation.turns import TURN_FACTS

WORK = "First 3.\nThen 5.\nThen 9.\nLast 4.\n\\boxed{4}"


@pytest.fixture
def in_path(tmp_path):
    rows = [make_row(f"Question {i}?", "4", row_id=f"p{i}", labels=Labels("toy")) for i in "012"]
    write_rows(rows, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def evaluated(folder, *rows):
    """``(id, number, reason, text)`` as an evaluation writes them."""
    path = folder / "evaluation/samples/toy.jsonl"
    path.parent.mkdir(parents=True)
    facts = {"benchmark": "toy", "seed": 1, "extracted": "", "prompt_tokens": 1}
    facts |= {"response_tokens": 1, "is_truncated": False, "seconds": 0.0}
    with open(path, "w") as file:
        for problem_id, number, reason, text in rows:
            own = {"id": problem_id, "sample": number, "reason": reason, "response": text}
            file.write(json.dumps(facts | own | {"score": float(reason == "correct")}) + "\n")
    return folder


def prefixes(run, in_path, *more):
    out_path = in_path.with_name("out.parquet")
    main_prepare.main(["prefixes", str(run), str(in_path), str(out_path), *more])
    return pq.read_table(out_path).to_pylist()


def test_beginnings_of_right_responses_become_columns(in_path, tmp_path, capsys):
    run = evaluated(
        tmp_path / "run",
        ("p0", 1, "correct", WORK),
        ("p0", 0, "wrong", "First 8.\n\\boxed{8}"),
        ("p2", 0, "correct", "\\boxed{4}"),
    )
    ratios = ["--ratios", "0.2", "0.6", "--unit", "sentence"]
    rows = prefixes(run, in_path, *ratios)
    # Five sentences, the box one of them: 1 and 3. p1 was never right, p2 begins with its answer.
    assert rows[0]["hint_level_1"] == "First 3."
    assert rows[0]["hint_level_2"] == "First 3.\nThen 5.\nThen 9."
    assert [row["hint_level_1"] for row in rows[1:]] == [None, None]
    assert "hint_level_3" not in rows[0]
    assert "3 problems, 2 without a hint" in capsys.readouterr().out
    assert [problem.id for problem in read_problems(in_path.with_name("out.parquet"))] == [
        *("p0", "p1", "p2")
    ]


def test_several_different_responses_are_lists_in_the_order_of_their_numbers(in_path, tmp_path):
    other = WORK.replace("3", "7")
    run = evaluated(
        tmp_path / "run",
        *(("p1", 5, "correct", other), ("p1", 2, "correct", WORK), ("p1", 3, "correct", WORK)),
    )
    rows = prefixes(run, in_path, "--per-prompt", "4", "--ratios", "0.2", "--unit", "sentence")
    assert [row["hint_level_1"] for row in rows] == [[], ["First 3.", "First 7."], []]


def test_what_holds_no_right_response_to_the_file_is_refused(in_path, tmp_path, capsys):
    cases = {
        "nothing": (None, "holds no evaluation/samples"),
        "wrong": ([("p0", 0, "wrong", WORK)], "has no right response to a problem of"),
        "others": ([("q", 0, "correct", WORK)], "has no right response to a problem of"),
    }
    for name, (rows, message) in cases.items():
        run = tmp_path / name if rows is None else evaluated(tmp_path / name, *rows)
        with pytest.raises(SystemExit, match="2"):
            prefixes(run, in_path)
        assert message in capsys.readouterr().err
        assert not in_path.with_name("out.parquet").exists()


def test_a_file_that_was_made_anew_since_is_refused(in_path, tmp_path, capsys):
    """Its ids may stand for other problems: those of a CSV are the numbers of its rows."""
    run = evaluated(tmp_path / "run", ("p0", 1, "correct", WORK))
    settings = {"files": {in_path.name: file_sha256(in_path)}}
    (run / "evaluation/settings.json").write_text(json.dumps(settings))
    assert prefixes(run, in_path, "--ratios", "0.2")[0]["hint_level_1"]
    settings["files"][in_path.name] = "0" * 64
    (run / "evaluation/settings.json").write_text(json.dumps(settings))
    with pytest.raises(SystemExit):
        prefixes(run, in_path)
    assert "as it is now, and ids alone do not tell" in capsys.readouterr().err


def test_a_later_turn_is_no_response_to_the_problem(in_path, tmp_path, capsys):
    run = evaluated(tmp_path / "run", ("p0", 0, "correct", WORK))
    path = run / "evaluation/samples/toy.jsonl"
    facts = dict.fromkeys(TURN_FACTS, 0.0)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"facts": facts}) + "\n")
    with pytest.raises(SystemExit, match="2"):
        prefixes(run, in_path)
    assert "line 1 is of several turns; prefixes are of one" in capsys.readouterr().err


@pytest.mark.parametrize("bare", ["\\boxed{4}", "4", " \n\\boxed{4}", "The answer is 4."])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_right_response_that_gives_no_prefix_takes_no_place(in_path, tmp_path, place, bare):
    texts = [WORK, WORK.replace("3", "7")]
    texts.insert(place, bare)
    run = evaluated(
        tmp_path / "run", *(("p0", number, "correct", text) for number, text in enumerate(texts))
    )
    how = ["--ratios", "0.2", "0.6", "--unit", "sentence"]
    assert prefixes(run, in_path, *how)[0]["hint_level_1"] == "First 3."
    for per_prompt in "23":
        [row, *_] = prefixes(run, in_path, *how, "--per-prompt", per_prompt)
        assert row["hint_level_1"] == ["First 3.", "First 7."]
        assert row["hint_level_2"][1] == "First 7.\nThen 5.\nThen 9."


def test_a_problem_whose_right_responses_all_give_no_prefix_is_counted_by_itself(
    in_path, tmp_path, capsys
):
    run = evaluated(tmp_path / "run", ("p0", 0, "correct", "4"), ("p0", 1, "correct", "\\boxed{4}"))
    assert [row["hint_level_1"] for row in prefixes(run, in_path)] == [None, None, None]
    assert "2 missing_hint, 1 missing_solution" in capsys.readouterr().out
