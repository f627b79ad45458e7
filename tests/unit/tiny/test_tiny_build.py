"""A build of a world that is killed, or that the disk stops, leaves the files that were there."""

import contextlib
import resource

import pytest

from recipe.run.errors import DataError
from recipe.worlds import build, pretrain, tokenizer
from recipe.worlds.worlds import ONE_TURN


class Killed(BaseException):
    pass


@pytest.fixture
def world(tmp_path):
    """The folder of a world whose files hold "old"."""
    (tmp_path / "base").mkdir()
    for name in ("train.parquet", "base/tokenizer.json", build.HASHES_NAME):
        (tmp_path / name).write_text("old")
    return tmp_path


def contents(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_a_build_that_ends_within_a_file_leaves_the_old_one(world, monkeypatch):
    def write_half(table, place):
        with contextlib.ExitStack() as stack:
            file = place if hasattr(place, "write") else stack.enter_context(open(place, "wb"))
            file.write(b"half")
        raise Killed

    monkeypatch.setattr(build.pq, "write_table", write_half)
    before = contents(world)
    with pytest.raises(Killed):
        build.build_problems(ONE_TURN, world)
    assert contents(world) == before


def test_a_tokenizer_that_is_half_written_leaves_the_old_one(world, monkeypatch):
    def save_half(folder, pieces):
        (folder / "tokenizer.json").write_text("half")
        raise Killed

    monkeypatch.setattr(build.tokenizer, "save_tokenizer", save_half)
    before = contents(world)
    with pytest.raises(Killed):
        build.build_tokenizer(ONE_TURN, world)
    assert contents(world) == before


def test_a_new_tokenizer_takes_the_place_of_the_old_and_drafts_have_no_hash(world):
    (world / ".base.draft").mkdir()
    (world / ".base.draft/left").write_text("by a build that was killed")
    build.write_hashes(world)
    assert "draft" not in (world / build.HASHES_NAME).read_text()
    build.build_tokenizer(ONE_TURN, world)
    assert contents(world)["base/tokenizer.json"] != "old"
    assert sorted(path.name for path in world.iterdir()) == ["SHA256SUMS", "base", "train.parquet"]


def test_a_disk_without_room_for_the_weights_is_told_with_the_folder(world):
    built = tokenizer.build_tokenizer(ONE_TURN.pieces)
    model = pretrain.new_model(built, 0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(DataError, match=f"{world}: the weights cannot be written there: "):
            pretrain.save_model(model, built, world / "base")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
