"""Closed, full and abandoned standard streams end no work and blame no file."""

import json
import subprocess
import sys

import pytest

from recipe.hint import main_grade, main_prepare

ROW = {"id": "m", "kind": "maths", "answer": "4", "response": r"\boxed{4}"}


@pytest.fixture
def shell(tmp_path):
    """Runs programs in a shell, in a folder with an input for each."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "sums.jsonl").write_text(json.dumps({"problem": "1+1?", "answer": "2"}) + "\n")

    def run(program, arguments):
        line = f"set -o pipefail; {sys.executable} {program.__file__} {arguments}"
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("closed", [">&-", "2>&- <&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error_and_the_file_is_whole(shell, tmp_path, closed):
    end = shell(main_grade, f"rows.jsonl out.jsonl --workers 1 {closed}")
    assert (end.returncode, end.stderr) == (0, "")
    assert json.loads((tmp_path / "out.jsonl").read_text())["reason"] == "correct"


def test_a_full_disk_for_what_is_printed_is_told_once_and_blames_no_file(shell, tmp_path):
    end = shell(main_prepare, "sums.jsonl out.parquet > /dev/full")
    told = "warning: output is incomplete: No space left on device\n"
    assert (end.returncode, end.stderr) == (0, told)
    assert (tmp_path / "out.parquet").is_file()


def test_a_reader_that_has_seen_enough_is_no_error(shell):
    end = shell(main_prepare, "sources | head -0")
    assert (end.returncode, end.stderr) == (0, "")


def test_a_child_gets_no_file_of_the_program_for_a_closed_stream(tmp_path):
    script = (
        "import recipe.run.ending, subprocess, sys\n"
        "with open(sys.argv[1], 'w') as file:\n"
        "    subprocess.run(['echo', 'x'], check=True)\n"
        "    assert file.fileno() > 2\n"
    )
    command = f'{sys.executable} -c "{script}" out.txt <&- >&- 2>&-'
    end = subprocess.run(["bash", "-c", command], cwd=tmp_path, check=False)
    assert (end.returncode, (tmp_path / "out.txt").read_text()) == (0, "")
