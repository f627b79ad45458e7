"""Whoever looks at the place sees the old file or the new one, and never a part."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from recipe.hint.whole_file import whole_file, write_whole


def test_a_text_is_there_when_the_call_returns(tmp_path):
    write_whole(tmp_path / "note.txt", "½ of it\n")

    assert (tmp_path / "note.txt").read_bytes() == b"\xc2\xbd of it\n"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_the_old_file_stands_until_the_block_has_ended(tmp_path):
    place = tmp_path / "note.txt"
    place.write_text("old")

    with whole_file(place) as file:
        file.write(b"new")
        file.flush()
        assert place.read_text() == "old"

    assert place.read_text() == "new"


def test_a_block_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    place = tmp_path / "note.txt"
    place.write_text("old")

    with pytest.raises(OSError, match="disk full"), whole_file(place) as file:
        file.write(b"ne")
        raise OSError("disk full")

    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path):
    place = tmp_path / "note.txt"
    place.write_text("old")
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from recipe.hint.whole_file import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'ne'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    end = subprocess.run([sys.executable, "-c", program, place], timeout=600, check=False)

    assert end.returncode == -signal.SIGKILL
    assert place.read_text() == "old"


def test_a_missing_folder_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "gone" / "note.txt", "new")
