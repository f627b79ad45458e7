"""What a file holds beyond the contract reaches the output as it was, whatever the form."""

import functools

import pyarrow.parquet as pq
import pytest
from hub_files import prepare, write
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint import main_prepare
from recipe.problems.columns import SCHEMA, read_problems
from recipe.problems.prepare import Keys, read_local
from recipe.run.errors import DataError

ROWS = [
    {
        "id": str(number),
        "problem": f"What is {number} + {number}?",
        "answer": str(2 * number),
        "hint_level_1": "Add.",
        "hint_level_2": f"Add {number} twice.",
        "hint_level_3": f"{number} + {number}.",
        "note": f'{number},\n"in all"',
    }
    for number in (1, 2)
]


FORMS = ["jsonl", "json", "csv", "tsv", "parquet", "jsonl.gz", "json.gz", "csv.gz", "tsv.gz"]


@pytest.mark.parametrize("form", FORMS)
def test_hints_and_notes_of_a_file_of_any_form_are_in_the_output(tmp_path, form):
    out = tmp_path / "out.parquet"
    prepare(write(tmp_path / f"mine.{form}", ROWS), out)
    kept = pq.read_table(out).to_pylist()
    names = ("hint_level_1", "hint_level_2", "hint_level_3", "note")
    assert [{name: row[name] for name in names} for row in kept] == [
        {name: row[name] for name in names} for row in ROWS
    ]
    assert read_problems(out)[1].hints == (("Add.",), ("Add 2 twice.",), ("2 + 2.",))
    assert [row["extra_info"]["index"] for row in kept] == ["1", "2"]
    assert kept[0]["data_source"] == "mine"


# Of one type a column, as a table has them.
COLUMNS = st.dictionaries(
    st.text("abcdefgh_", min_size=1).filter(lambda name: name not in {*SCHEMA.names, "id"}),
    st.one_of(
        st.lists(each, min_size=2, max_size=2)
        for each in (st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), st.booleans(),
                     st.floats(-1e9, 1e9), st.lists(st.text(max_size=4), min_size=1, max_size=3))
    ),
    max_size=4,
)  # fmt: skip


@given(COLUMNS)
def test_any_other_column_of_json_lines_comes_back_equal(tmp_path_factory, columns):
    folder = tmp_path_factory.mktemp("columns")
    rows = [
        {"problem": f"{n}?", "answer": 0.5} | {name: both[n] for name, both in columns.items()}
        for n in range(2)
    ]
    main_prepare.write_rows(read_local(write(folder / "a.jsonl", rows)).rows, folder / "a.parquet")
    kept = pq.read_table(folder / "a.parquet").to_pylist()
    assert [{name: row[name] for name in columns} for row in kept] == [
        {name: both[n] for name, both in columns.items()} for n in range(2)
    ]
    assert [row["answer"] for row in kept] == ["0.5", "0.5"]


def test_a_column_that_is_read_under_another_name_is_not_kept_twice(tmp_path):
    rows = [{"Q": "1+1?", "A": "2", "why": "Count.", "n": "9", "level": "easy"}]
    keys = Keys("Q", "A", "why", "n")
    (row,) = read_local(write(tmp_path / "a.csv", rows), keys=keys).rows
    assert set(row) == {*SCHEMA.names, "level"}


def test_a_column_of_the_contract_is_written_anew_and_that_is_told(tmp_path, capsys):
    rows = [{"problem": "1+1?", "answer": "2", "ability": "sums", "prompt": "Hello"}]
    path = write(tmp_path / "a.jsonl", rows)
    prepare(path, tmp_path / "a.parquet")
    told = "a.jsonl: its own `ability`, `prompt` are rewritten (docs/data.md)"
    assert told in capsys.readouterr().out
    assert pq.read_table(tmp_path / "a.parquet").column("ability").to_pylist() == ["math"]


def nested(depth):
    """A list of numbers in as many lists or objects."""
    return functools.reduce(lambda inner, n: [{"a": inner}, [inner]][n % 2], range(depth), [1])


def test_a_column_nested_as_deep_as_may_be_comes_back(tmp_path):
    rows = [{"problem": "1+1?", "answer": "2", "level": nested(39)}]
    prepare(write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").column("level").to_pylist() == [nested(39)]


def test_a_column_that_a_table_cannot_hold_is_named(tmp_path):
    nothing = "row 0, column `level`: holds empty objects alone"
    for values, what in (
        ([1, "x"], "row 1, column `level`: mixes types"),
        ([1, 2, 2.5, None, [3], 4], "row 4, column `level`: mixes types"),
        ([{}, {}], nothing),
        ([[{}]], nothing),
        ([{"a": {}}], nothing),
        ([nested(40)], "row 0, column `level`: is nested more than 40 deep"),
        ([1, nested(600)], "row 1, column `level`: mixes types"),
        ([nested(600)], "row 0, column `level`: is nested more than 40 deep"),
    ):
        rows = [
            {"problem": f"{v}?", "answer": "1", "level": v, "id": n} for n, v in enumerate(values)
        ]
        with pytest.raises(DataError, match=what):
            prepared = read_local(write(tmp_path / "a.jsonl", rows))
            main_prepare.write_rows(prepared.rows, tmp_path / "a.parquet")
        assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-9], "a.jsonl.gz: not a whole gzip file"),
        (lambda data: b"{}" + data, "a.jsonl.gz: not a whole gzip file"),
        (lambda data: data[:20] + b"\x00\xff\x00\xff" + data[24:], "a.jsonl.gz: not a whole gzip"),
    ],
)
def test_a_packed_file_that_is_damaged_is_one_line(tmp_path, spoil, message):
    path = write(tmp_path / "a.jsonl.gz", ROWS)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        read_local(path)


def test_a_packed_parquet_file_is_no_form(tmp_path):
    (tmp_path / "a.parquet.gz").touch()
    with pytest.raises(DataError, match=r"must end in one of \.jsonl, .*\.tsv.* may be gzipped"):
        read_local(tmp_path / "a.parquet.gz")


HALF = "\ud800"  # of a surrogate pair: JSON can write it, and no file of text can hold it


@pytest.mark.parametrize(
    ("more", "column"),
    [
        ({"note": HALF}, "note"),
        ({"note": {"by": ["n", HALF]}}, "note"),
        ({"note": {f"by{HALF}": "n"}}, "note"),
        ({f"note{HALF}": "n"}, "note\\ud800"),
        ({"hint_level_1": HALF}, "hint_level_1"),
    ],
)
def test_half_of_a_surrogate_pair_in_any_column_is_told_with_its_line(
    tmp_path, capsys, more, column
):
    rows = [{"problem": f"{n}+1?", "answer": "2"} for n in range(4)]
    rows[2] |= more
    out = tmp_path / "out.parquet"
    with pytest.raises(SystemExit, match="2"):
        prepare(write(tmp_path / "in.jsonl", rows), out)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"line 3, column `{column}`: holds half of a surrogate pair" in told
    assert not out.exists()
