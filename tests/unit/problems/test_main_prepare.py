"""The program: from a file or a name to a parquet file, or one line and no file."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hub_files import BROKEN, lay_out, prepare, write

from recipe.hint import main_prepare
from recipe.problems import programs
from recipe.problems.columns import read_problems
from recipe.problems.prepare import read_local
from recipe.problems.sources import SOURCES

LINES = [
    {"id": "s/0", "problem": "1+1?", "answer": "2", "solution": "Count."},
    {"problem": "half?", "answer": 0.5, "solution": None},
]
SHARED = "How many of the first hundred whole numbers can be divided by seven?"


def refusal(capsys, *arguments):
    """The one line of a refused call."""
    with pytest.raises(SystemExit, match="2"):
        prepare(*arguments)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_the_program_writes_a_file_that_keeps_the_contract(tmp_path, capsys):
    path, out = write(tmp_path / "sums.jsonl", LINES), tmp_path / "out" / "sums.parquet"
    prepare(path, out, "--source", "mine", "--split", "test", "--limit", "1")
    (problem,) = read_problems(out)
    assert (problem.id, problem.data_source, problem.answer) == ("s/0", "mine", "2")
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert capsys.readouterr().out.splitlines() == [
        f"{out}: 1 problems, all with a solution",
        f"sha256 {digest}",
    ]


def test_long_work_shows_each_of_its_parts_with_how_far_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("recipe.problems.progress.SHOWN_AFTER_S", 0.0)
    path, out = write(tmp_path / "sums.jsonl", LINES), tmp_path / "sums.parquet"
    prepare(path, out)
    told = capsys.readouterr().err
    for line in (
        f"reading {path}: 2 rows",
        "looking for repeated problems: 100%",
        "reading gold answers: 100%",
        f"checking {out}: 2 rows",
    ):
        assert line in told


def test_columns_of_a_csv_are_mapped(tmp_path):
    path = write(tmp_path / "a.csv", [{"Q": "1+1?", "A": "2", "why": "Count.", "n": "9"}])
    keys = ["--problem-key=Q", "--answer-key=A", "--solution-key=why", "--id-key=n"]
    prepare(path, tmp_path / "a.parquet", *keys)
    (problem,) = read_problems(tmp_path / "a.parquet")
    assert (problem.text, problem.answer, problem.solution, problem.id) == (
        "1+1?",
        "2",
        "Count.",
        "9",
    )


@pytest.mark.parametrize("case", BROKEN, ids=[case["name"] for case in BROKEN])
def test_a_broken_file_is_one_line_and_no_output(tmp_path, capsys, case):
    (tmp_path / case["file"]).write_text(case["text"], encoding="utf-8")
    told = refusal(capsys, tmp_path / case["file"], tmp_path / "out.parquet")
    assert f"{tmp_path}/{case['message']}" in told
    assert os.listdir(tmp_path) == [case["file"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--limit", "x"], "invalid int value: 'x'"),
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["--overlap-share", "2"], "--overlap-share must be above 0 and at most 1, got 2.0"),
        (["--tokenizer", "x"], "--tokenizer and --max-prompt-tokens are given together"),
        (["--drop-overlap"], "--drop-overlap needs --check-overlap"),
        (["--from", "x"], "--from and --revision belong to a named source"),
        (["--check-overlap", "none.parquet"], "none.parquet: no such file"),
        (["--kind", "choice"], "line 1, column `answer`: the ground truth of a choice is one let"),
        (["--options-key", "of"], "--options-key needs --kind choice, got no --kind"),
        (["--options-key", "of", "--kind", "maths"], "needs --kind choice, got --kind maths"),
        (["--solution-key", "why"], "no column 'why'; there are 'answer', 'id', 'problem', 'so"),
        (["--id-key", "nr"], "'problem', 'solution': name yours with --id-key COLUMN\n"),
        (["--problem-key", "q"], "no column 'q'; there are 'answer', 'id', 'problem', 'solution'"),
        (["--answer-key", "a", "--id-key", "n"], "with --answer-key COLUMN and --id-key COLUMN\n"),
    ],
)
def test_wrong_options_are_one_line_and_no_output(tmp_path, capsys, options, message):
    path = write(tmp_path / "in.jsonl", LINES)
    assert message in refusal(capsys, path, tmp_path / "out.parquet", *options)
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_a_letter_without_its_option_is_told_by_the_files_own_names(tmp_path, capsys):
    rows = [{"q": "Even?\n(A) 1\n(B) 2", "a": letter} for letter in "BD"]
    path, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.parquet"
    keys = ["--kind", "choice", "--problem-key", "q", "--answer-key", "a"]
    told = refusal(capsys, path, out, *keys)
    assert "in.jsonl: line 2, column `a`: the problem lists the options A, B, the answer" in told
    path = write(tmp_path / "in.jsonl", [{"q": "Even?", "a": "B", "of": ["1"]}])
    told = refusal(capsys, path, out, *keys, "--options-key", "opts")
    assert "no column 'opts'; there are 'a', 'of', 'q': name yours with --options-key" in told
    told = refusal(capsys, path, out, *keys, "--options-key", "of")
    assert "line 1, column `of`: a choice needs 2 to 26 options, got 1" in told


@pytest.mark.parametrize("option", ["--problem-key=q", "--id-key=id", "--kind=maths"])
def test_a_named_source_takes_no_option_of_a_file_of_ones_own(tmp_path, capsys, option):
    folder = lay_out("aime24", tmp_path / "hub")
    told = refusal(capsys, "aime24", tmp_path / "out.parquet", "--from", folder, option)
    name = option.split("=")[0]
    assert f"{name} belongs to a file of your own, and aime24 is a source" in told


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("hint_level_1", 5, "column `hint_level_1`: expected a text or a list of texts, got 5"),
        ("first_attempts", "x", "column `first_attempts`: expected a list of texts, got 'x'"),
        ("id", "a\u0000", "column `id`: holds a control character"),
        ("note", 5, "column `note`: mixes types with the rows before"),
    ],
)
def test_a_value_of_another_type_is_told_by_its_line(tmp_path, capsys, column, value, told):
    # Line 1 is blank; the row before has a text where the last one has a number.
    rows = [LINES[0] | {"note": "n"}, LINES[1] | {column: value}]
    path = tmp_path / "in.jsonl"
    path.write_text("\n" + "\n".join(map(json.dumps, rows)))
    assert f"in.jsonl: line 3, {told}" in refusal(capsys, path, tmp_path / "out.parquet")


def test_wrong_names_are_one_line(tmp_path, capsys):
    told = refusal(capsys, "gsm9k", tmp_path / "out.parquet")
    assert "gsm9k: neither a source nor a file name with an ending" in told
    path = write(tmp_path / "in.jsonl", LINES)
    assert "must end in .parquet" in refusal(capsys, path, tmp_path / "out.json")


def test_warnings_are_printed_and_refused_when_strict(tmp_path, capsys):
    rows = [{"id": n, "problem": "1+1?", "answer": "2", "solution": "Count."} for n in "abc"]
    path, out = write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet"
    prepare(path, out)
    assert "warning: " in capsys.readouterr().out
    told = refusal(capsys, path, tmp_path / "b.parquet", "--strict")
    assert "--strict: " in told and "2 rows, column `problem`: the same words" in told
    assert not (tmp_path / "b.parquet").exists()


def test_a_note_is_no_reason_to_refuse(tmp_path):
    prepare(write(tmp_path / "a.jsonl", LINES), tmp_path / "a.parquet", "--strict")
    assert len(read_problems(tmp_path / "a.parquet")) == 2


def test_shared_problems_are_told_refused_or_left_out(tmp_path, capsys):
    bench = tmp_path / "bench.parquet"
    prepare(write(tmp_path / "b.jsonl", [{"problem": SHARED, "answer": "14"}]), bench)
    rows = [{"problem": SHARED.upper(), "answer": "14"}, {"problem": "x?", "answer": "1"}]
    path, out = write(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet"
    capsys.readouterr()
    prepare(path, out, "--check-overlap", bench)
    assert "line 1 = sha-" in capsys.readouterr().out
    assert len(read_problems(out)) == 2
    strict = tmp_path / "c.parquet"
    assert "text shared with" in refusal(capsys, path, strict, "--check-overlap", bench, "--strict")
    prepare(path, out, "--check-overlap", bench, "--drop-overlap", "--strict")
    assert [problem.text for problem in read_problems(out)] == ["x?"]
    assert "1 rows with shared text are left out" in capsys.readouterr().out


def test_a_file_that_shares_everything_leaves_nothing_to_write(tmp_path, capsys):
    bench = tmp_path / "bench.parquet"
    path = write(tmp_path / "b.jsonl", [{"problem": SHARED, "answer": "14"}])
    prepare(path, bench)
    capsys.readouterr()
    options = ["--check-overlap", bench, "--drop-overlap"]
    told = refusal(capsys, path, tmp_path / "out.parquet", *options)
    assert f"--drop-overlap leaves no problem: all 1 share text with {bench}; take" in told
    assert not (tmp_path / "out.parquet").exists()


def test_another_number_of_rows_than_on_record_is_a_warning(tmp_path, capsys):
    prepare("aime24", tmp_path / "a.parquet", "--from", lay_out("aime24", tmp_path))
    assert "1 rows, aime24 test has 30" in capsys.readouterr().out


def program(problem, n):
    solution = f"```python\ndef f(x):\n    return x + {n}\n```"
    return {"problem": problem, "answer": f"assert f(2) == {2 + n}", "solution": solution}


# What --strict refuses, beside shared text: of some rows, and of the file as a whole.
WARNINGS = {
    "repeated": ([{"problem": "1+1?", "answer": "2", "id": n} for n in "ab"], "the same words"),
    "no mathematics": ([{"problem": "Why?", "answer": "As it is so."}], "not read as mathematics"),
    "programs not run": ([program("Add one.", 1)], "tests of 2 programs were not run"),
    "other number of rows": ([{"problem": "1+1?", "answer": "2"}], "2 rows, mine test has 30"),
}


@pytest.mark.parametrize("case", WARNINGS)
@pytest.mark.parametrize("drops", [False, True])
def test_strict_refuses_every_warning_whether_shared_rows_are_dropped_or_not(
    case, drops, tmp_path, capsys, monkeypatch
):
    rows, told = WARNINGS[case]
    bench = tmp_path / "bench.parquet"
    prepare(write(tmp_path / "b.jsonl", [{"problem": SHARED, "answer": "14"}]), bench)
    kind = ["--kind", "program"] if case == "programs not run" else []
    shared = program(SHARED, 2) if kind else {"problem": SHARED, "answer": "14"}
    path = write(tmp_path / "a.jsonl", [*rows, shared])
    options = [*kind, "--check-overlap", bench, *(["--drop-overlap"] if drops else [])]
    if kind:
        monkeypatch.setattr(programs, "layers_for", lambda _: None)  # a machine without a sandbox
    if case == "other number of rows":
        made = read_local(path)
        source = SimpleNamespace(
            name="mine",
            default_split="test",
            split=lambda _: SimpleNamespace(num_rows=30),
        )
        monkeypatch.setattr(main_prepare, "find_source", lambda _: source)
        monkeypatch.setattr(main_prepare, "read_source", lambda *_, **__: made)
    out = tmp_path / "out.parquet"
    capsys.readouterr()
    prepare(path, out, *options)
    printed = capsys.readouterr().out
    assert re.search(f"warning: .*{told}", printed)
    assert len(read_problems(out)) == len(rows) + (not drops)
    out.unlink()
    refused = refusal(capsys, path, out, *options, "--strict")
    # The first warning, and a count of the others: shared text is one where it stays.
    assert told in refused and ("(and 1 more warnings)" in refused) != drops
    assert not out.exists()


def test_the_sources_are_listed_with_their_pins_and_in_the_documentation(capsys):
    prepare("sources")
    listed = capsys.readouterr().out
    page = Path(main_prepare.__file__).parents[2] / "docs" / "data.md"
    documented = page.read_text("utf-8")
    for source in SOURCES.values():
        for text in (source.name, source.repo):
            assert text in listed and text in documented
        assert source.revision in listed
        assert source.revision[:12] in documented


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_network_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    ran = run(tmp_path, sys.executable, main_prepare.__file__, "gsm8k", "out.parquet")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "refused; without the network, copy the file" in ran.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_a_full_disk_is_one_line_too(tmp_path):
    path = write(tmp_path / "in.jsonl", [{"problem": "x" * 9000, "answer": "1"}])
    command = f'ulimit -f 1; exec "{sys.executable}" "{main_prepare.__file__}" in.jsonl out.parquet'
    ran = run(tmp_path, "bash", "-c", command)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "out.parquet: cannot be written: File too large" in ran.stderr
    assert os.listdir(tmp_path) == [path.name]
