"""The parquet contract: what is written comes back, and every breach is named."""

import copy
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hub_files import write

from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT
from recipe.problems.columns import (
    SCHEMA,
    FileReport,
    Labels,
    check_file,
    make_row,
    read_problems,
    write_rows,
)
from recipe.problems.schema import content_id
from recipe.run.errors import DataError

ROWS = [
    make_row("1+1?", "2", solution="Count: $\\nu$\n2.", row_id="a", labels=Labels("sums")),
    make_row("2+2?", "4", row_id="b", labels=Labels("sums")),
    make_row("3+3?", "6", solution="Twice 3."),
]


def changed(number, **fields):
    rows = copy.deepcopy(ROWS)
    rows[number].update(fields)
    return rows


def test_rows_come_back_as_problems_in_their_order(tmp_path):
    path = tmp_path / "sums.parquet"
    write_rows(ROWS, path)
    first, second, third = read_problems(path)
    assert (first.id, first.text, first.answer) == ("a", "1+1?", "2")
    assert (first.solution, first.data_source) == ("Count: $\\nu$\n2.", "sums")
    assert first.messages == (
        {"role": "system", "content": ANSWER_SYSTEM_PROMPT},
        {"role": "user", "content": "1+1?"},
    )
    assert (second.id, second.solution) == ("b", "")
    assert third.id == content_id("3+3?")
    assert pq.read_schema(path).equals(SCHEMA)


def test_a_missing_solution_is_counted_and_the_answer_does_not_take_its_place(tmp_path):
    write_rows(ROWS, tmp_path / "sums.parquet")
    report = check_file(tmp_path / "sums.parquet")
    assert report == FileReport(str(tmp_path / "sums.parquet"), 3, 1, 0)
    assert "3 problems, 1 without a solution" in report.summary()
    assert read_problems(tmp_path / "sums.parquet")[1].solution == ""


def test_equal_rows_give_equal_bytes_and_nothing_else_is_left_in_the_folder(tmp_path):
    write_rows(ROWS, tmp_path / "new" / "one.parquet")
    write_rows(copy.deepcopy(ROWS), tmp_path / "new" / "two.parquet")
    one, two = (tmp_path / "new" / name for name in ("one.parquet", "two.parquet"))
    assert one.read_bytes() == two.read_bytes()
    assert sorted(os.listdir(tmp_path / "new")) == ["one.parquet", "two.parquet"]


def test_columns_beyond_the_contract_are_kept(tmp_path):
    rows = [{**row, "hint_level_1": f"hint {number}"} for number, row in enumerate(ROWS)]
    write_rows(rows, tmp_path / "hinted.parquet")
    kept = pq.read_table(tmp_path / "hinted.parquet").column("hint_level_1").to_pylist()
    assert kept == ["hint 0", "hint 1", "hint 2"]


def test_the_files_of_the_release_are_read_with_integer_indexes(tmp_path):
    rows = [
        {
            "prompt": [{"content": text, "role": "user"}],
            "problem": text,
            "solution": "think",
            "answer": "1",
            "extra_info": {"index": index, "split": "train"},
        }
        for index, text in ((7, "x?"), (8, "y?"))
    ]
    path = write(tmp_path / "release.parquet", rows)
    assert [(problem.id, problem.answer) for problem in read_problems(path)] == [
        ("7", "1"),
        ("8", "1"),
    ]
    assert check_file(path).num_content_ids == 0


@pytest.mark.parametrize("extra_info", ["absent", None, {"split": "train"}, {"index": None}])
def test_without_an_index_the_id_comes_from_the_text_and_is_counted(tmp_path, extra_info):
    rows = changed(0, extra_info=extra_info)
    for row in rows:
        row["extra_info"] = extra_info
        if extra_info == "absent":
            del row["extra_info"]
    path = write(tmp_path / "plain.parquet", rows)
    assert [problem.id for problem in read_problems(path)] == [
        content_id(text) for text in ("1+1?", "2+2?", "3+3?")
    ]
    assert check_file(path).num_content_ids == 3
    assert "3 with an id made from their text" in check_file(path).summary()


USER, SYSTEM = {"role": "user", "content": "x"}, {"role": "system", "content": "x"}
NO_TRUTH = {"style": "rule", "ground_truth": None}
BREACHES = {
    "an empty problem": (changed(1, problem=" "), "row 1, column `problem`: .* got ' '"),
    "no problem": (changed(2, problem=None), "row 2, column `problem`: .* got None"),
    "no prompt": (changed(1, prompt=None), "row 1, column `prompt`: expected a list .* got None"),
    "no turns": (changed(1, prompt=[]), r"row 1, column `prompt`: expected a list .* got \[\]"),
    "a system turn last": (
        changed(1, prompt=[USER, SYSTEM]),
        "row 1, column `prompt`: the last turn must be the user's, it is the system's",
    ),
    "a turn without text": (
        changed(1, prompt=[{"role": "user", "content": None}]),
        "row 1, column `prompt`: the content of turn 0 is not text: None",
    ),
    "an empty turn": (
        changed(1, prompt=[{"role": "user", "content": " "}]),
        "row 1, column `prompt`: the last turn is empty",
    ),
    "no ground truth": (
        changed(2, reward_model=NO_TRUTH),
        "row 2, column `reward_model.ground_truth`: the ground truth is missing",
    ),
    "an empty ground truth": (
        changed(2, reward_model={"style": "rule", "ground_truth": ""}),
        "row 2, column `reward_model.ground_truth`: the ground truth is missing .* ''",
    ),
    "an empty index": (
        changed(0, extra_info={"index": "", "split": "train"}),
        "row 0, column `extra_info.index`: expected a text or an integer, got ''",
    ),
    "an index given twice": (
        changed(1, extra_info={"index": "a", "split": "train"}),
        "rows 0 and 1 have the same `extra_info.index` 'a'; give every row its own, or leave",
    ),
    "a kind that is none": (
        changed(1, reward_model={"style": "rule", "ground_truth": "2", "kind": "maths2"}),
        "row 1, column `reward_model.kind`: expected one of maths, choice, program, got 'maths2'",
    ),
    "a choice that is no letter": (
        changed(1, reward_model={"style": "rule", "ground_truth": "BC", "kind": "choice"}),
        "row 1, column `reward_model.ground_truth`: .* one letter from A to Z, got 'BC'",
    ),
    "tests that are no Python": (
        changed(1, reward_model={"style": "rule", "ground_truth": "assert (", "kind": "program"}),
        "row 1, column `reward_model.ground_truth`: the tests are not Python: '\\(' was never",
    ),
    "tests without an assert": (
        changed(1, reward_model={"style": "rule", "ground_truth": "f(1)", "kind": "program"}),
        "row 1, column `reward_model.ground_truth`: the tests hold no assert",
    ),
    "a text given twice without an index": (
        [{**row, "problem": "x?", "extra_info": None} for row in ROWS],
        "rows 0 and 1, column `problem`: the same text twice and no `extra_info.index`; drop one",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_named_by_file_row_and_column_when_read(tmp_path, name):
    rows, message = BREACHES[name]
    path = write(tmp_path / "bad.parquet", rows)
    with pytest.raises(DataError, match=f"bad.parquet: {message}"):
        check_file(path)
    with pytest.raises(DataError, match=f"bad.parquet: {message}"):
        read_problems(path)


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_not_written(tmp_path, name):
    rows, message = BREACHES[name]
    with pytest.raises(DataError, match=f"bad.parquet: {message}"):
        write_rows(rows, tmp_path / "bad.parquet")
    assert os.listdir(tmp_path) == []


def test_an_index_of_zero_in_every_row_is_refused_with_what_to_do(tmp_path):
    rows = [{**row, "extra_info": {"index": 0}} for row in ROWS]
    path = write(tmp_path / "zero.parquet", rows)
    with pytest.raises(DataError, match="rows 0 and 1 .* '0'; .* leave `index` out: ids are then"):
        check_file(path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("prompt", "1+1?", "row 0, column `prompt`: expected a list of turns .* got '1"),
        ("prompt", ["1+1?"], "row 0, column `prompt`: turn 0 is not a role and a content: '1"),
        ("prompt", [{"text": "x"}], "row 0, column `prompt`: turn 0 is not a role and a content"),
        ("problem", 5, "row 0, column `problem`: expected a text that is not empty, got 5"),
        ("solution", 5, "row 0, column `solution`: expected a text or nothing, got 5"),
        ("reward_model", "2", "row 0, column `reward_model`: expected named fields, got '2'"),
        ("reward_model", {"ground_truth": ["2"]}, r"missing or no text or number: \['2'\]"),
        ("extra_info", "0", "row 0, column `extra_info`: expected named fields, got '0'"),
        (
            "extra_info",
            {"index": 0.5},
            "`extra_info.index`: expected a text or an integer, got 0",
        ),
    ],
)
def test_a_column_of_the_wrong_type_is_named(tmp_path, column, value, message):
    path = write(tmp_path / "bad.parquet", [{**ROWS[0], column: value}])
    with pytest.raises(DataError, match=message):
        check_file(path)


@pytest.mark.parametrize("column", ["prompt", "problem"])
def test_a_missing_column_is_named_with_those_that_are_there(tmp_path, column):
    rows = [{key: value for key, value in row.items() if key != column} for row in ROWS]
    path = write(tmp_path / "bad.parquet", rows)
    with pytest.raises(DataError, match=f"column `{column}` is missing; the file has .*solution"):
        check_file(path)


def test_a_ground_truth_in_neither_place_is_a_missing_column(tmp_path):
    rows = [{"prompt": [USER], "problem": "x"}]
    path = write(tmp_path / "bad.parquet", rows)
    with pytest.raises(DataError, match=r"column `reward_model` \(or `answer`\) is missing"):
        check_file(path)


def test_a_file_that_is_missing_foreign_cut_or_empty_is_refused(tmp_path):
    with pytest.raises(DataError, match="none.parquet: no such file; main_prepare.py writes one"):
        check_file(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("problem,answer\n1,2\n")
    with pytest.raises(DataError, match="text.parquet: not a readable parquet file"):
        check_file(tmp_path / "text.parquet")
    write_rows(ROWS, tmp_path / "cut.parquet")
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut.parquet: not a readable parquet file"):
        read_problems(tmp_path / "cut.parquet")
    pq.write_table(SCHEMA.empty_table(), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="empty.parquet: no rows; at least one problem is needed"):
        check_file(tmp_path / "empty.parquet")


def test_rows_are_counted_across_batches(tmp_path):
    rows = [make_row(f"{number}?", "1") for number in range(2100)]
    rows[2050]["answer"] = rows[2050]["reward_model"]["ground_truth"] = None
    with pytest.raises(DataError, match="row 2050, column `reward_model.ground_truth`"):
        check_file(write(tmp_path / "long.parquet", rows))


def test_the_name_must_be_one_that_verl_reads(tmp_path):
    with pytest.raises(DataError, match="sums.pq: the name must end in .parquet"):
        write_rows(ROWS, tmp_path / "sums.pq")


def test_a_column_of_mixed_types_is_refused(tmp_path):
    rows = [{**ROWS[0], "note": 1}, {**ROWS[1], "note": "x"}]
    with pytest.raises(
        DataError, match="mixed.parquet: row 1, column `note`: mixes types with the rows before"
    ):
        write_rows(rows, tmp_path / "mixed.parquet")


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_half_one(tmp_path):
    write_rows(ROWS, tmp_path / "sums.parquet")
    before = (tmp_path / "sums.parquet").read_bytes()
    program = (
        "import resource\n"
        "from recipe.problems.columns import make_row, write_rows\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n"
        f"write_rows([make_row('x' * 9000, '1')], {str(tmp_path / 'sums.parquet')!r})\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "OSError: [Errno 27]" in ran.stderr  # a file may not grow past 1024 bytes
    assert (tmp_path / "sums.parquet").read_bytes() == before
    assert os.listdir(tmp_path) == ["sums.parquet"]


@pytest.mark.parametrize("texts", [["first", "second"], [], None])
def test_first_attempts_are_read(tmp_path, texts):
    rows = changed(0, first_attempts=texts)
    problems = read_problems(write(tmp_path / "attempts.parquet", rows))
    assert problems[0].first_attempts == tuple(texts or ())
    assert problems[1].first_attempts == ()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hint_level_1", 5),
        ("hint_level_2", [5]),
        ("hint_level_12", {"a": "b"}),
        ("hint_level_1", True),
        ("first_attempts", 5),
        ("first_attempts", "a text"),
        ("first_attempts", ["a", None]),
    ],
)
def test_a_column_of_texts_that_holds_something_else_is_refused_by_row(tmp_path, column, value):
    rows = [{**ROWS[0], column: None}, {**ROWS[1], column: value}]
    expected = f"row 1, column `{column}`: expected a"
    with pytest.raises(DataError, match=f"any.parquet: {expected}"):
        read_problems(write(tmp_path / "any.parquet", rows))
    with pytest.raises(DataError, match=f"own.parquet: {expected}"):
        write_rows(rows, tmp_path / "own.parquet")


@pytest.mark.parametrize("sign", ["\0", "\n", "\x1f", "\x7f", "\x85"])
def test_an_id_with_a_control_character_is_refused(tmp_path, sign):
    rows = changed(0, extra_info={"index": f"a{sign}", "split": "train"})
    told = "row 0, column `extra_info.index`: holds a control character, got 'a.*'; take it out"
    with pytest.raises(DataError, match=told):
        read_problems(write(tmp_path / "any.parquet", rows))


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("data_source", "a\x1b]0;b", "holds a control character, got"),
        ("data_source", "a\nb", "holds a control character, got"),
        ("__rollout_n__", 4, "verl would count so many responses in validation"),
    ],
)
def test_what_would_act_on_a_terminal_or_on_verl_is_refused_by_row(tmp_path, column, value, told):
    path = write(tmp_path / "any.parquet", changed(0, **{column: value}))
    with pytest.raises(DataError, match=f"row 0, column `{column}`: {told}"):
        read_problems(path)


OPTIONS = "Even?\n(A) 1\n(B) 2"


@pytest.mark.parametrize(
    ("problem", "letter", "listed"),
    [
        (OPTIONS, "D", "A, B"),
        ("Is f(D) even?\n\n  (A) 1\n  (B) 2\n  (C) 3", "E", "A, B, C, D"),
        (OPTIONS, "B", None),
        ("(A) 1 (B) 2", "D", None),  # not a list of lines: not looked at
        ("Which?\n(A) holds.\n(B) holds.\nA. one\nB. other\nC. both\nD. none", "D", None),
        ("Which?\n(A) holds.\n(B) holds.\n- **C)** both\n[D] none", "D", None),
        ("No list", "Z", None),
    ],
)
def test_the_letter_of_a_choice_is_one_of_the_options_that_its_problem_lists(
    tmp_path, problem, letter, listed
):
    row = make_row(problem, letter, labels=Labels("s", "train", "choice"))
    if listed is None:
        return write_rows([row], tmp_path / "a.parquet")
    told = f"row 0, .*the problem lists the options {listed}, the answer is {letter}"
    with pytest.raises(DataError, match=told):
        write_rows([row], tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("kind", "truth", "system", "request_"),
    [
        ("maths", "2", "\\boxed{}", ""),
        ("choice", "B", "\\boxed{}", "\\boxed{A}."),
        ("program", "assert f()", "```python block.", "```python block."),
    ],
)
def test_each_kind_asks_for_its_own_form_of_answer(tmp_path, kind, truth, system, request_):
    row = make_row("x?", truth, labels=Labels("s", "test", kind))
    assert system in row["prompt"][0]["content"]
    assert row["prompt"][1]["content"].startswith("x?")
    assert row["prompt"][1]["content"].endswith(request_)
    write_rows([row], tmp_path / "one.parquet")
    (problem,) = read_problems(tmp_path / "one.parquet")
    assert (problem.kind, problem.answer, problem.text) == (kind, truth, "x?")


def test_a_file_without_kinds_is_mathematics(tmp_path):
    row = make_row("x?", "2")
    del row["reward_model"]["kind"]
    assert read_problems(write(tmp_path / "old.parquet", [row]))[0].kind == "maths"
