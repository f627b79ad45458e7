"""Whoever looks at the place sees the old file or the new one, and never a part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

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


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    file, link = tmp_path / "disk" / "note.txt", tmp_path / "note.txt"
    file.parent.mkdir()
    link.symlink_to(file)

    for text in ("first", "second"):  # before and after there is a file
        write_whole(link, text)

        assert link.is_symlink()
        assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["note.txt"]


def test_threads_that_write_one_file_at_once_leave_one_of_their_texts(tmp_path):
    path, texts = tmp_path / "fatal.json", [letter * 10_000 for letter in "abcd"]
    for _ in range(50):
        threads = [threading.Thread(target=write_whole, args=(path, text)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert path.read_text() in texts
    assert [each.name for each in tmp_path.iterdir()] == ["fatal.json"]


def test_a_line_that_a_full_disk_cut_makes_room_for_the_next_ones(tmp_path):
    place = tmp_path / "lines"
    append_lines(place, [b"one"])
    place.write_bytes(place.read_bytes() + b"tw")
    append_lines(place, [b"two", b"three"])
    assert place.read_bytes() == b"one\ntwo\nthree\n"
