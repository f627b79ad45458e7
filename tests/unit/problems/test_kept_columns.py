"""Columns of hints are added to a table: all else in the file stays as it is stored."""

import asyncio

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_offline_hints import Fake

from recipe.hint import main_prepare
from recipe.problems.columns import check_target, read_file, read_problems
from recipe.run.errors import DataError
from recipe.study.offline_hints import write_offline_hints

REWARD = {"style": "rule", "ground_truth": "4"}


def stored(path, **columns):
    """A file that another program wrote: two rows of the contract with ``columns`` beside."""
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Question {n}?", "name": "me"}],
            "problem": f"Question {n}?",
            "solution": "Count.",
            "data_source": "toy",
            "reward_model": REWARD,
            "extra_info": {"index": f"p{n}"},
        }
        | {name: values[n] for name, values in columns.items()}
        for n in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def hinted(in_path, source=None, **changes):
    out_path = in_path.with_name("out.parquet")
    asyncio.run(write_offline_hints(in_path, out_path, source or Fake(), **changes))
    return pq.read_table(out_path)


FILES = {
    "fields of the structs": {
        "extra_info": [{"index": n, "split": "train", "weight": 2, "tags": ["k"]} for n in "01"],
        "reward_model": [REWARD | {"tol": 0.1}, REWARD | {"tol": None}],
    },
    "integers as ids": {"extra_info": [{"index": n} for n in (7, 8)]},
    "numbers as answers": {"reward_model": [None, None], "answer": [4, 5]},
    "numbers as ground truths": {"reward_model": [{"ground_truth": n} for n in (4, 5)]},
    "columns of other types": {"image": [b"\xff", None], "z": [None, None], "a": [{"b": [1]}, {}]},
}


@pytest.mark.parametrize("columns", FILES.values(), ids=FILES)
def test_every_other_column_stays_with_its_type_and_place(tmp_path, columns):
    before = pq.read_table(stored(tmp_path / "in.parquet", **columns))
    after = hinted(tmp_path / "in.parquet")
    assert after.select(before.column_names).equals(before)
    assert after.column_names[len(before.column_names) :] == [f"hint_level_{n}" for n in (1, 2, 3)]
    assert len(read_file(tmp_path / "out.parquet").problems) == 2
    assert all(len(problem.hints) == 3 for problem in read_problems(tmp_path / "out.parquet"))


def test_a_data_frame_of_the_file_is_read_back_with_its_index_and_the_new_hints(tmp_path):
    path = stored(tmp_path / "in.parquet", hint_level_1=["old", "old"], hint_level_9=["x", "y"])
    frame = pq.read_table(path).to_pandas().set_index(pandas.Index([5, 6], name="nr"))
    frame.to_parquet(path)
    hinted(path, max_level=2)
    again = pandas.read_parquet(tmp_path / "out.parquet")
    assert list(again.index) == [5, 6]
    assert list(again["hint_level_1"]) == ["p0 0 level 1, 42", "p1 0 level 1, 42"]
    assert "hint_level_9" not in again


def test_columns_without_a_hint_are_of_texts_so_that_files_can_be_joined(tmp_path):
    lost = Fake({(f"p{n}", number): "parse_failed" for n in range(2) for number in range(2)})
    in_path = stored(tmp_path / "in.parquet")
    assert hinted(in_path, lost).schema.field("hint_level_1").type == pa.string()
    lists = hinted(in_path, lost, per_prompt=2)
    assert lists.schema.field("hint_level_1").type == pa.list_(pa.string())
    assert lists.column("hint_level_1").to_pylist() == [[], []]


# -- what can be known about writing is told before anything is asked -----------------------------


def targets(folder):
    (folder / "file").write_text("")
    (folder / "folder.parquet").mkdir()
    return {
        "out.jsonl": "the name must end in .parquet",
        "file/out.parquet": "cannot be written: Not a directory; name an OUT.parquet in a folder",
        "folder.parquet": "is a folder; name a file",
        "/proc/nowhere/out.parquet": "cannot be written: ",
    }


def test_nobody_is_asked_for_a_file_that_cannot_be_written(tmp_path):
    in_path, source = stored(tmp_path / "in.parquet"), Fake()
    for name, message in targets(tmp_path).items():
        with pytest.raises(DataError, match=message):
            asyncio.run(write_offline_hints(in_path, tmp_path / name, source))
    assert source.asked == []


def test_the_commands_refuse_it_before_they_look_at_anything_else(tmp_path, capsys):
    in_path = stored(tmp_path / "in.parquet")
    for name, message in targets(tmp_path).items():
        for given in (["hints", str(in_path), str(tmp_path / name), "--model=m", "--url=nowhere"],):
            with pytest.raises(SystemExit, match="2"):
                main_prepare.main(given)
            err = capsys.readouterr().err
            assert message in err and err.count("\n") == 1
    names = {each.name for each in tmp_path.iterdir()}
    assert names == {"in.parquet", "file", "folder.parquet"}


def test_a_new_folder_and_a_link_to_a_file_are_targets_and_looking_leaves_nothing(tmp_path):
    (tmp_path / "link.parquet").symlink_to(tmp_path / "later.parquet")
    for name in ("new/deep/out.parquet", "link.parquet"):
        check_target(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["link.parquet"]
