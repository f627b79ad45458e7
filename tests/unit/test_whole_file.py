"""Whoever looks at the place sees the old file or the new one, and never a part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from recipe.run.whole_file import append_lines, whole_file, write_whole


def test_a_text_is_there_when_the_call_returns(tmp_path):
    write_whole(tmp_path / "note.txt", "½ of it\n")

    assert (tmp_path / "note.txt").read_bytes() == b"\xc2\xbd of it\n"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


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
        "from recipe.run.whole_file import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'ne'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    end = subprocess.run([sys.executable, "-c", program, place], timeout=600, check=False)

    assert end.returncode == -signal.SIGKILL
    assert place.read_text() == "old"


def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write_whole(pipe, "new")

    assert os.read(end, 9) == b"new"
    assert pipe.is_fifo()
    os.close(end)


def test_a_line_that_a_full_disk_cut_makes_room_for_the_next_ones(tmp_path):
    place = tmp_path / "lines"
    append_lines(place, [b"one"])
    place.write_bytes(place.read_bytes() + b"tw")
    append_lines(place, [b"two", b"three"])
    assert place.read_bytes() == b"one\ntwo\nthree\n"
