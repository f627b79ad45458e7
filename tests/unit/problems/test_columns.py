"""The contract: every layout is read, what is wrong with a row is named, columns come back."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS, PAIRS, SOLUTION_KEYS, ask, user, work, write_layout

from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT
from recipe.problems.columns import make_row, read_file, read_problems, write_rows
from recipe.problems.schema import content_id, problem_from_row
from recipe.run.errors import DataError

ROW = make_row("1+1?", "2", solution="Count.", row_id="a", source="sums")
SECOND = make_row("2+2?", "4", row_id="b")


def write(path, rows):
    names = {name: None for row in rows for name in row}
    pq.write_table(pa.Table.from_pylist([names | row for row in rows]), path)
    return path


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_read_and_says_where_it_found_what(tmp_path, name):
    _, (text, solution, answer) = LAYOUTS[name]
    file = read_file(write_layout(name, tmp_path), SOLUTION_KEYS.get(name, ""))
    assert f"(problem: {text}; solution: {solution}; answer: {answer})" in file.summary()
    assert [each.answer for each in file.problems] == [str(a * b) for a, b in PAIRS]
    assert all(ask(*PAIRS[row]) in each.text for row, each in enumerate(file.problems))
    assert len({each.id for each in file.problems}) == len(PAIRS)
    if solution != "none":
        assert work(*PAIRS[-1]) in file.problems[-1].solution


def test_rows_come_back_as_problems_with_their_further_columns(tmp_path):
    path = tmp_path / "sums.parquet"
    write_rows([ROW | {"hint_level_1": ["a", " "], "note": 5}], path)
    (problem,) = read_problems(path)
    assert (problem.id, problem.text, problem.solution) == ("a", "1+1?", "Count.")
    assert problem.messages[0] == {"role": "system", "content": ANSWER_SYSTEM_PROMPT}
    assert problem.hints == (("a", ""),)
    assert pq.read_table(path)["note"].to_pylist() == [5]
    before = path.read_bytes()
    write_rows(pq.read_table(path).to_pylist(), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["sums.parquet"]


@pytest.mark.parametrize(
    ("truth", "kind", "answer"),
    [
        (" 42 ", "maths", " 42 "),
        (42, "maths", "42"),
        (42.0, "maths", "42"),
        (0.5, "maths", "0.5"),
        (["1", "2"], "maths", "1, 2"),
        ({"target": 5}, "maths", '{"target": 5}'),  # for a reward function of one's own
        (["import math", "assert f(1) == 2"], "program", "import math\nassert f(1) == 2"),
        ({"tests": "assert f(1)", "setup": ""}, "program", "assert f(1)"),
    ],
)
def test_a_ground_truth_is_a_text_a_number_a_list_or_a_mapping(truth, kind, answer):
    row = {"prompt": "x?", "reward_model": {"ground_truth": truth, "kind": kind}}
    assert problem_from_row(row).answer == answer


def test_the_answer_is_never_passed_off_as_a_solution():
    row = {"prompt": "x?", "answer": "42", "extra_info": {"answer": " 42 "}}
    assert problem_from_row(row).solution == ""
    assert problem_from_row(row | {"solution": "6 * 7"}).solution == "6 * 7"
    assert problem_from_row(row | {"why": "6 * 7"}, "why").solution == "6 * 7"


def test_an_index_that_counts_rows_is_told_apart_by_the_text():
    rows = [{"prompt": text, "answer": 1, "extra_info": {"index": 0}} for text in ("a?", "b?")]
    first, second = (problem_from_row(row).id for row in rows)
    assert first == f"0-{content_id('a?')[4:12]}" != second
    assert problem_from_row({"prompt": "a?", "answer": 1}).id == content_id("a?")


def changed(**columns):
    return [ROW, {**SECOND, **columns}]


SYSTEM = {"role": "system", "content": "x"}
BREACHES = [
    (changed(prompt=None), "row 1, column `prompt`: expected turns .* or a text .*, got None"),
    (changed(prompt=[*user("x"), SYSTEM]), "row 1, column `prompt`: expected turns"),
    (changed(prompt=user(None)), "row 1, column `prompt`: expected turns"),
    (
        changed(reward_model={"ground_truth": None}, answer=None),
        "row 1, column `reward_model.ground_truth`: the ground truth is missing: None",
    ),
    (changed(extra_info={"index": "a"}), "row 1, .* row 0 has the same id 'a'"),
    ([{**ROW, "extra_info": None}] * 2, "row 1, .* row 0 has the same id .* `hint prepare"),
    (
        changed(reward_model={"ground_truth": "2", "kind": "maths2"}),
        "row 1, column `reward_model.kind`: expected one of maths, choice, program, reasoning_gym, "
        "got 'maths2'",
    ),
    (
        changed(reward_model={"ground_truth": "BC", "kind": "choice"}),
        "row 1, column `reward_model.ground_truth`: .* one letter from A to Z, got 'BC'",
    ),
    (
        changed(reward_model={"ground_truth": "assert (", "kind": "program"}),
        "row 1, .* the tests are not Python: '\\(' was never",
    ),
    (changed(hint_level_1=5), "row 1, column `hint_level_1`: expected a list of texts"),
]


@pytest.mark.parametrize(("rows", "message"), BREACHES, ids=[each for _, each in BREACHES])
def test_a_breach_is_named_by_file_row_and_column(tmp_path, rows, message):
    with pytest.raises(DataError, match=f"bad.parquet: {message}"):
        read_file(write(tmp_path / "bad.parquet", rows))
    with pytest.raises(DataError, match=f"new.parquet: {message}"):
        write_rows(rows, tmp_path / "new.parquet")
    assert os.listdir(tmp_path) == ["bad.parquet"]


FILES = {
    "no prompt": ([{"problem": "x?", "answer": 1}], "row 0, column `prompt`: expected turns"),
    "no truth": ([{"prompt": "x"}], "row 0, column `answer`: the ground truth is missing"),
    "pictures": ([ROW | {"images": [b"x"]}], "row 0, column `images`: is not empty"),
    "no rows": ([], "no rows"),
}


@pytest.mark.parametrize(("rows", "message"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_used_says_what_to_do(tmp_path, rows, message):
    with pytest.raises(DataError, match=f"a.parquet: {message}"):
        read_file(write(tmp_path / "a.parquet", rows))


def test_a_file_that_is_missing_foreign_or_cut_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"none.parquet: not a readable .*docs/data.md.* No such"):
        read_file(tmp_path / "none.parquet")
    write(tmp_path / "a.parquet", [ROW])
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-99])
    with pytest.raises(DataError, match="cut.parquet: not a readable parquet file"):
        read_file(tmp_path / "cut.parquet")
    with pytest.raises(DataError, match="sums.pq: the name must end in .parquet"):
        write_rows([ROW], tmp_path / "sums.pq")
    table = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(table.append_column("answer", table["answer"]), tmp_path / "twice.parquet")
    with pytest.raises(DataError, match="twice.parquet: column `answer` is there more than once"):
        read_file(tmp_path / "twice.parquet")


def test_each_kind_asks_for_its_own_form_of_answer():
    for kind, truth, system, request in [
        ("maths", "2", "boxed", "x?"),
        ("choice", "B", "boxed", r"as in \boxed{A}"),
        ("program", "assert f(1) == 2", "```python", "```python block"),
    ]:
        first, last = make_row("x?", truth, kind=kind)["prompt"]
        assert system in first["content"] and request in last["content"]
