"""A local file of any of four forms becomes rows, or one line says why not."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_files import write

from recipe.problems.prepare import Keys, Origin, read_local
from recipe.problems.schema import content_id
from recipe.run.errors import DataError

LINES = [
    {"id": "s/0", "problem": "1+1?", "answer": "2", "solution": "Count."},
    {"problem": "half?", "answer": 0.5, "solution": None},
]


def jsonl(path, lines):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def test_fields_ids_and_labels_of_a_file(tmp_path):
    prepared = read_local(jsonl(tmp_path / "sums.jsonl", LINES))
    rows = prepared.rows
    assert [row["extra_info"] for row in rows] == [
        {"index": "s/0", "split": "train"},
        {"index": content_id("half?"), "split": "train"},
    ]
    assert [row["data_source"] for row in rows] == ["sums", "sums"]
    assert [row["solution"] for row in rows] == ["Count.", ""]
    assert rows[1]["reward_model"] == {"style": "rule", "ground_truth": "0.5", "kind": "maths"}
    assert prepared.places == ("line 1", "line 2")


def test_numbers_keep_their_spelling(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", ['{"problem": "x", "answer": 0.50, "id": 007}'])
    with pytest.raises(DataError, match="line 1 is not JSON"):
        read_local(path)  # 007 is no JSON number
    path = jsonl(tmp_path / "a.jsonl", ['{"problem": "x", "answer": 0.50, "id": 7}'])
    row = read_local(path).rows[0]
    assert (row["answer"], row["extra_info"]["index"]) == ("0.50", "7")


def test_other_keys_labels_and_system_prompts(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"q": "x?", "a": "1", "s": "so", "n": 3}])
    keys = Keys(problem="q", answer="a", solution="s", id="n")
    row = read_local(path, keys=keys, origin=Origin("src", "test", "")).rows[0]
    assert row["prompt"] == [{"role": "user", "content": "x?"}]
    assert row["data_source"] == "src"
    assert row["extra_info"] == {"index": "3", "split": "test"}


def test_a_csv_row_of_several_lines_is_named_by_its_first(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('problem,answer\n"one\ntwo",1\nthree,\n')
    with pytest.raises(DataError, match="line 4, column `answer`: is empty"):
        read_local(path)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32()])
def test_narrow_numbers_of_a_parquet_column_have_no_more_digits_than_they_know(tmp_path, kind):
    """0.1 of 32 bits is 0.10000000149011612 in 64."""
    answers = [0.1, 2.5, 7.0, -0.25]
    columns = {"problem": list("abcd"), "answer": pa.array(np.array(answers), kind)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    made = read_local(tmp_path / "a.parquet").rows
    golds = [row["reward_model"]["ground_truth"] for row in made]
    assert golds == ["0.1", "2.5", "7", "-0.25"]


def test_whole_numbers_of_a_parquet_column_lose_their_point(tmp_path):
    rows = [{"problem": "x", "answer": 27.0}, {"problem": "y", "answer": 0.25}]
    made = read_local(write(tmp_path / "a.parquet", rows)).rows
    assert [row["answer"] for row in made] == ["27", "0.25"]


def test_a_solution_longer_than_the_limit_of_the_csv_module_is_read(tmp_path):
    rows = [{"problem": "x", "answer": "1", "solution": "s" * 200_000}]
    assert len(read_local(write(tmp_path / "a.csv", rows)).rows[0]["solution"]) == 200_000


def test_options_are_lettered_and_the_prompt_asks_for_the_letter(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"problem": "Even?", "answer": "B", "of": ["1", 2]}])
    (row,) = read_local(path, keys=Keys(options="of", kind="choice")).rows
    assert row["problem"] == "Even?\n\n(A) 1\n(B) 2"
    assert row["prompt"][-1]["content"].startswith(row["problem"] + "\n\nGive the letter")
    with pytest.raises(DataError, match="`answer`: the options end with B, the answer is C"):
        rows = [{"problem": "Even?", "answer": "C", "of": ["1", "2"]}]
        read_local(write(path, rows), keys=Keys(options="of", kind="choice"))


def test_the_tests_of_a_program_may_be_a_list(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"problem": "f", "answer": ["import os", "assert f()"]}])
    (row,) = read_local(path, keys=Keys(kind="program")).rows
    assert row["reward_model"]["ground_truth"] == "import os\nassert f()"


def test_faults_are_named_by_the_file_s_own_columns(tmp_path):
    keys = Keys(problem="q", answer="a", id="n", kind="choice")
    path = write(tmp_path / "a.jsonl", [{"q": "x", "a": "no letter"}])
    with pytest.raises(DataError, match="line 1, column `a`: the ground truth of a choice"):
        read_local(path, keys=keys)
    path = write(tmp_path / "a.jsonl", [{"q": "x", "a": "A", "n": 1}, {"q": "y", "a": "B", "n": 1}])
    with pytest.raises(DataError, match="line 2, column `n`: '1' is that of line 1 too"):
        read_local(path, keys=keys)


def test_a_gap_of_a_data_frame_is_an_empty_field(tmp_path):
    rows = [{"problem": "x", "answer": 1.0}, {"problem": "y", "answer": float("nan")}]
    with pytest.raises(DataError, match="row 1, column `answer`: is empty"):
        read_local(write(tmp_path / "a.parquet", rows))


def test_a_limit_stops_before_a_bad_line_and_blank_lines_do_not_count(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", ["", LINES[0], "  ", LINES[1], "not json"])
    assert len(read_local(path, limit=2).rows) == 2
    with pytest.raises(DataError, match="a.jsonl: line 5 is not JSON"):
        read_local(path)


def test_all_faults_of_a_file_are_counted_in_its_one_message(tmp_path):
    lines = [{"problem": "x", "answer": ""}] * 8 + [{"problem": "", "answer": "1"}]
    with pytest.raises(DataError, match="line 1, column `answer`: is empty") as caught:
        read_local(jsonl(tmp_path / "a.jsonl", lines))
    rest = "line 6 and 2 more); other faults at line 9 (`problem`)"
    assert str(caught.value).endswith(rest)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.json", "a.jsonl.gz"])
@pytest.mark.parametrize("before", [0, 3, 2000])
def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path, name, before):
    good = b'{"problem": "x", "answer": "1"}\n'  # 2,000 lines are more than a decoder's block
    content = good * before + b'{"problem": "Zo\xeb"}\n'
    if name.endswith(".gz"):
        content = gzip.compress(content)
    (tmp_path / name).write_bytes(content)
    told = rf"{name}: line {before + 1} is not UTF-8 text \(byte 16 is 0xeb\); save the file as"
    with pytest.raises(DataError, match=told):
        read_local(tmp_path / name)


def test_text_of_two_bytes_a_letter_is_refused_with_its_name(tmp_path):
    (tmp_path / "a.csv").write_text("problem,answer\nx,1\n", encoding="utf-16")
    with pytest.raises(DataError, match="a.csv: is UTF-16 text; .*iconv -f utf-16"):
        read_local(tmp_path / "a.csv")


def test_columns_that_no_row_has_are_one_mistake_told_once(tmp_path):
    rows = [{"Question ": "x", "Result": "1"}] * 9
    with pytest.raises(DataError) as caught:
        read_local(jsonl(tmp_path / "a.jsonl", rows))
    assert str(caught.value).endswith(
        "a.jsonl: no column 'problem' and no column 'answer'; there are 'Question ', 'Result': "
        "name yours with --problem-key COLUMN and --answer-key COLUMN"
    )


def test_a_column_that_one_row_lacks_is_told_with_its_line(tmp_path):
    lines = [LINES[0], {"problem": "y"}]
    with pytest.raises(DataError, match="line 2, column `answer`: no such column; there are prob"):
        read_local(jsonl(tmp_path / "a.jsonl", lines))


def test_a_parquet_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.parquet").write_text("problem,answer\n")
    with pytest.raises(DataError, match="a.parquet: not a readable parquet file"):
        read_local(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="none.csv: no such file"):
        read_local(tmp_path / "none.csv")


def test_json_nested_too_deep_is_refused(tmp_path):
    with pytest.raises(DataError, match="line 1 is not JSON"):
        read_local(jsonl(tmp_path / "a.jsonl", ["[" * 100_000]))
