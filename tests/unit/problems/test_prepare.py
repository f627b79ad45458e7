"""Files of one's own, in every form and layout, become a file of the contract, or one line."""

import json
import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hub_files import prepare, write
from layouts import LAYOUTS, SOLUTION_KEYS, user, write_layout

from recipe.hint import main_prepare
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.problems.prepare import Given, read_rows
from recipe.run.errors import DataError

LINES = [
    {"id": "s/0", "problem": "1+1?", "answer": 2, "solution": "Count.", "hint_level_1": "h"},
    {"id": "s/1", "problem": "2+2?", "answer": 4, "solution": "Count.", "hint_level_1": "h"},
]
SHARED = "How many of the first hundred whole numbers can be divided by seven?"


def refusal(capsys, *arguments):
    """The one line of a refused call."""
    with pytest.raises(SystemExit, match="2"):
        prepare(*arguments)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def csv_text(separator):
    return "\n".join(
        separator.join(each) for each in (["id", "problem", "answer"], ["a", "x", "1"])
    )


# Name of the file -> its bytes; each holds two problems or one.
FORMS = {
    "a.jsonl": "\n\n".join(map(json.dumps, LINES)),
    "a.json": json.dumps(LINES),
    "indented.json": "\n " + json.dumps([{**each, "meta": {}} for each in LINES]),
    "lines.json": "\n".join(map(json.dumps, LINES)),
    "a.csv": csv_text(","),
    "b.csv": csv_text(";"),
    "c.csv": csv_text("\t"),
    "a.tsv": csv_text("\t"),
    "bom.csv": "\ufeff" + csv_text(","),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_any_form_is_read(tmp_path, name):
    path = tmp_path / name
    path.write_text(FORMS[name], encoding="utf-8")
    rows = read_rows(str(path)).rows
    assert {row["extra_info"]["index"] for row in rows} in ({"s/0", "s/1"}, {"a"})


def test_a_folder_of_shards_is_read_by_its_split(tmp_path):
    for part, name in enumerate(("train-00000-of-00002", "train-00001-of-00002", "test")):
        write(tmp_path / f"{name}.parquet", [LINES[part % 2]])
    assert len(read_rows(str(tmp_path)).rows) == 2
    assert len(read_rows(str(tmp_path), Given(split="test")).rows) == 1
    with pytest.raises(DataError, match="is a folder without dev"):
        read_rows(str(tmp_path), Given(split="dev"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_of_any_layout_keeps_its_ids_texts_and_solutions(tmp_path, name):
    path, out = write_layout(name, tmp_path), tmp_path / "out.parquet"
    key = [f"--solution-key={SOLUTION_KEYS[name]}"] if name in SOLUTION_KEYS else []
    prepare(path, out, *key)
    before, after = read_problems(path, SOLUTION_KEYS.get(name, "")), read_problems(out)
    for one, other in zip(before, after, strict=True):
        for what in ("id", "messages", "text", "solution", "answer", "kind"):
            assert getattr(one, what) == getattr(other, what)
    again = tmp_path / "again.parquet"
    prepare(out, again)
    assert again.read_bytes() == out.read_bytes()


ONE = '{"problem": "x?", "answer": "1"}\n'
BROKEN = [
    ("in.jsonl", ONE + "{", "line 2 is not JSON"),
    ("in.jsonl", ONE + "[1]", "line 2: expected an object"),
    ("in.jsonl", ONE + '{"problem": "y?"}', "line 2, column `answer`: no such column"),
    ("in.jsonl", ONE + '{"problem": "x?", "answer": "2"}', "line 2, column `id`: 'sha-"),
    (
        "in.csv",
        "problem,answer\nx,1\ny,\nz,\n",
        "line 3, line 4, column `answer`: the ground truth is missing: ''",
    ),
    ("in.csv", "problem,answer\nx,1,000\n", "line 2 has not the header's fields"),
    ("in.csv", "id,problem,answer\na,x,1\na,y,1\n", "line 3, column `id`: 'a' is that of line 2"),
    ("in.json", "5", "line 1: expected an object, got 5"),
    ("in.jsonl", ONE + "[" * 9999, "line 2 is not JSON: nested too deeply"),
    ("in.csv", "problem,answer,answer\nx,1,2\n", "column `answer` is there more than once"),
    ("gsm9k", "x", "or be of `hint prepare sources`"),
    ("in.xlsx", "x", "the name must end in one of .jsonl"),
]


@pytest.mark.parametrize(("name", "text", "message"), BROKEN, ids=[each[-1] for each in BROKEN])
def test_a_broken_file_is_one_line_and_no_output(tmp_path, capsys, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    told = refusal(capsys, tmp_path / name, tmp_path / "out.parquet")
    assert f"{tmp_path}/{name}" in told and message in told
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"problem": "\ud800?"}, "out.parquet, column `prompt`: cannot be stored: "),
        ({"meta": {"of": {}}}, "out.parquet: cannot be stored: Cannot write struct type 'of'"),
    ],
)
def test_what_parquet_cannot_hold_is_one_line_and_no_output(tmp_path, capsys, more, message):
    path = write(tmp_path / "in.jsonl", [{"problem": "x?", "answer": 1, **more}])
    assert message in refusal(capsys, path, tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_a_solution_key_without_texts_is_warned_of_and_empty_objects_stay_behind(tmp_path, capsys):
    rows = [{"problem": "x?", "answer": 1, "of": ["s"], "meta": {}, "hint_level_1": None}]
    prepare(write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet", "--solution-key=of")
    assert "column `of` has no text in any row, so there is no solution" in capsys.readouterr().out
    names = set(pq.read_schema(tmp_path / "a.parquet").names)
    assert "hint_level_1" in names and "meta" not in names


OPTIONS = [
    (["--unknown"], "unrecognized arguments: --unknown\n"),
    (["--from", "x"], "--from and --revision belong to a named source"),
    (["--kind", "choice"], "line 1, column `answer`: the ground truth of a choice is one letter"),
    (["--options-key", "of"], "column `of`: a choice needs 2 to 26 options, got 0"),
    (["--problem-key", "q"], "column `q`: no such column; there are id, problem"),
    (["--solution-key", "of"], "column `of`: no such column"),
    (["--limit", "0"], "argument --limit/--size: 0 must be a whole number of at least 1\n"),
    (["--id-key", "n"], "column `n`: no such column; there are id, problem"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[" ".join(o) for o, _ in OPTIONS])
def test_wrong_options_are_one_line_and_no_output(tmp_path, capsys, options, message):
    path = write(tmp_path / "in.jsonl", LINES)
    assert message in refusal(capsys, path, tmp_path / "out.parquet", *options)
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_what_the_command_says_stands_above_what_the_file_says(tmp_path):
    path = tmp_path / "a.parquet"
    write_rows(
        [make_row("A or B", "B", row_id="1", source="s", kind="choice") | {"name": "n"}], path
    )
    said = {"source": "t", "split": "test", "system_prompt": "Box it."}
    (row,) = read_rows(str(path), Given(id="name", kind="maths", **said)).rows
    assert row["prompt"][0]["content"] == "Box it."
    assert (row["data_source"], row["extra_info"]) == ("t", {"index": "n", "split": "test"})


def test_repeated_problems_are_left_out_with_a_warning(tmp_path, capsys):
    rows = [{"prompt": user("x?"), "answer": 1}] * 3 + [{"prompt": user("y?"), "answer": 1}]
    prepare(write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet")
    assert "warning: " in (told := capsys.readouterr().out)
    assert "2 rows, column `problem`: an earlier row again, with its answer; left out (li" in told
    assert len(read_problems(tmp_path / "a.parquet")) == 2


@pytest.mark.parametrize(
    ("gold", "told"),
    [
        ("proof", "no answer but a placeholder"),
        ("16 - 8 = 8\n#### 8", "not read as mathematics"),
        ("As it is so.", "not read as mathematics"),
    ],
)
def test_golds_that_no_response_matches_are_warned_of(tmp_path, capsys, gold, told):
    rows = [{"problem": "x?", "answer": "1"}, {"problem": "y?", "answer": gold}]
    prepare(write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet")
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "column `answer`" in each]
    assert line.startswith("warning: ") and told in line and "(line 2" in line


def test_shared_problems_are_told_or_left_out(tmp_path, capsys):
    bench = tmp_path / "bench.parquet"
    prepare(write(tmp_path / "b.jsonl", [{"problem": SHARED, "answer": "14"}]), bench)
    rows = [{"problem": SHARED.upper(), "answer": "14"}, {"problem": "x?", "answer": "1"}]
    path, out = write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet"
    capsys.readouterr()
    prepare(path, out, "--check-overlap", bench)
    assert (
        f"1 rows share text with a benchmark; --drop-overlap leaves them out (line 1 = {bench} sha-"
        in capsys.readouterr().out
    )
    prepare(path, out, "--check-overlap", bench, "--drop-overlap")
    assert [problem.text for problem in read_problems(out)] == ["x?"]


def test_a_file_that_is_read_is_never_written_over(tmp_path, capsys):
    source, once = write(tmp_path / "in.jsonl", LINES), tmp_path / "once.parquet"
    prepare(source, once)
    shutil.copy(once, tmp_path / "bench.parquet")
    (tmp_path / "link.parquet").symlink_to(once)
    before = once.read_bytes()
    for arguments in (
        [once, tmp_path / "link.parquet"],
        ["gsm8k", once, "--from", once],
        [source, once, "--check-overlap", tmp_path / "bench.parquet", once],
    ):
        capsys.readouterr()
        assert "is read too" in refusal(capsys, *arguments)
        assert once.read_bytes() == before


def test_the_sources_are_listed_and_a_hub_that_is_away_is_one_line_at_once(tmp_path, capsys):
    prepare("sources")
    assert "repo: MathArena/aime_2026" in capsys.readouterr().out
    command = [sys.executable, main_prepare.__file__, "gsm8k", "out.parquet"]
    away = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "cache")}
    for offline, why in (
        ("0", "refused; without the network give --from"),
        ("1", "OfflineMode"),
    ):
        environment = os.environ | away | {"HF_HUB_OFFLINE": offline}
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
        assert why in ran.stderr
