"""Every named source is read from files laid out as the hub lays them out."""

import re
from collections import Counter

import pytest
from hub_files import SETS, lay_out, write

from recipe.problems import sources
from recipe.problems.prepare import Origin
from recipe.problems.sources import SOURCES, find_source, read_source
from recipe.run.errors import DataError


def read(name, given, split=None, **options):
    source = SOURCES[name]
    origin = Origin(name, split or source.default_split)
    return read_source(source, origin, given=given, **options)


def shown(row):
    """A row in the words of the golden file."""
    return {
        "id": row["extra_info"]["index"],
        "problem": row["problem"],
        "answer": row["answer"],
        "solution": row["solution"],
        "kind": row["reward_model"]["kind"],
    }


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name]["expected"]])
def test_the_hub_s_files_of_a_source_become_rows(tmp_path, name):
    prepared = read(name, lay_out(name, tmp_path), SETS[name]["split"])
    assert [shown(row) for row in prepared.rows] == SETS[name]["expected"]
    source = SETS[name].get("data_source", name)
    assert {row["data_source"] for row in prepared.rows} == {source}
    assert {row["extra_info"]["split"] for row in prepared.rows} == {SETS[name]["split"]}


def test_gpqa_options_are_shuffled_by_the_id_and_the_letter_follows(tmp_path):
    (row,) = read("gpqa_diamond", lay_out("gpqa_diamond", tmp_path)).rows
    assert row["extra_info"]["index"] == "gpqa_diamond/rec1"
    assert f"({row['answer']}) Neon" in row["problem"]
    assert row["problem"].startswith("Which, of these,\nis a noble gas?\n\n(A) ")
    assert row["prompt"][-1]["content"].endswith(r"as the final answer, as in \boxed{A}.")
    assert "as in" not in row["problem"]  # hints are written from the question alone
    (again,) = read("gpqa_diamond", tmp_path).rows
    assert again == row


def test_the_right_letter_is_spread_evenly(tmp_path):
    (golden,) = SETS["gpqa_diamond"]["files"]["gpqa_diamond.csv"]
    rows = [{**golden, "Record ID": f"rec{n}", "Question": f"{n}?"} for n in range(800)]
    path = write(tmp_path / "gpqa_diamond.csv", rows)
    count = Counter(row["answer"] for row in read("gpqa_diamond", path).rows)
    # 800 draws of one in four: 200, standard deviation sqrt(800 * 3/16) = 12; 4 of them are 49.
    assert {letter for letter in count if abs(count[letter] - 200) < 49} == set("ABCD")


def test_a_plain_choice_gets_its_options_in_brackets(tmp_path):
    problem = "Which is even?\nOptions:\nA. one\nof many\nB. 2\nC. 3"
    path = write(tmp_path / "a.jsonl", [{"id": "7", "problem": problem, "answer": "B"}])
    (row,) = read("mmlu_pro", path).rows
    assert row["problem"] == "Which is even?\n\n(A) one\nof many\n(B) 2\n(C) 3"
    assert row["reward_model"] == {"style": "rule", "ground_truth": "B", "kind": "choice"}


def test_a_program_s_prompt_shows_its_tests_and_asks_for_a_block(tmp_path):
    (row,) = read("mbpp", lay_out("mbpp", tmp_path)).rows
    system, user = row["prompt"]
    assert "```python" in system["content"] and "boxed" not in system["content"]
    assert "assert halve(4) == 2" in user["content"]
    assert row["ability"] == "code"


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("gsm8k", {"question": "x", "answer": "no mark"}, "column `answer`: has no line that"),
        ("gsm8k", {"q": "x"}, r"column `question`: expected question\+answer or problem\+answer"),
        (
            "math",
            {"problem": "x", "solution": r"$\boxed{1}$, $\boxed{2$"},
            "column `solution`: has no complete last",
        ),
        (
            "mmlu_pro",
            {"question": "x", "options": ["1", "2"], "answer": "B", "answer_index": 0},
            "column `answer_index`: 0 is not the place of the answer B",
        ),
        (
            "mmlu_pro",
            {"question": "x", "options": ["1", "2"], "answer": "C", "answer_index": 2},
            "column `answer`: the options end with B, the answer is C",
        ),
        ("mmlu_pro", {"question": "x", "options": ["1"], "answer": "A"}, "2 to 26 options, got 1"),
        ("mbpp", {"prompt": "x", "test_list": []}, "column `test_list`: is empty"),
        ("mbpp", {"prompt": "x", "test_list": ["assert"]}, "column `answer`: the tests are not Py"),
        ("olympiadbench", {"question": "x", "final_answer": []}, "`final_answer`: is empty"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path, name, row, message):
    path = write(tmp_path / "a.jsonl", [row])
    with pytest.raises(DataError, match=f"a.jsonl: line 1, {message}|line 1, .*{message}"):
        read(name, path)


def test_rows_of_several_files_are_named_with_their_file(tmp_path):
    lay_out("math", tmp_path)
    file = tmp_path / "geometry" / "test-00000-of-00001.parquet"
    write(file, [{"problem": "x", "solution": ""}])
    with pytest.raises(DataError, match=r"geometry/test-00000.*, row 0, column `solution`: is em"):
        read("math", tmp_path, "test")


def test_a_source_is_pinned_or_asks_for_a_commit():
    for source in SOURCES.values():
        assert re.fullmatch(r"[0-9a-f]{40}|", source.revision), source.name
    with pytest.raises(DataError, match="no commit of baohao/sage_train is on record; give --rev"):
        read("sage_train", None)


def test_the_pinned_or_the_given_commit_is_fetched(tmp_path, monkeypatch):
    asked = []

    def fetch(repo, file, *, revision):
        asked.append((repo, file, revision))
        return lay_out("gsm8k", tmp_path) / "main" / "train-00000-of-00001.parquet"

    monkeypatch.setattr(sources, "fetch", fetch)
    assert len(read("gsm8k", None, "train").rows) == 1
    read("gsm8k", None, "train", revision="b" * 40)
    file = "main/train-00000-of-00001.parquet"
    pinned = SOURCES["gsm8k"].revision
    assert asked == [("openai/gsm8k", file, pinned), ("openai/gsm8k", file, "b" * 40)]


def test_names_are_found_in_any_spelling():
    assert find_source("MMLU-Pro") is SOURCES["mmlu_pro"]
    assert find_source("gsm8k.jsonl") is None
