"""verl's own data set class reads the files that main_prepare.py writes, and keeps every field."""

import json
import logging

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.utils.dataset.rl_dataset import RLHFDataset

from recipe import REPOSITORY
from recipe.hint import main_prepare
from recipe.hint.adapter.preflight.data import DataFile, check_alike
from recipe.problems.columns import make_row, read_problems
from recipe.problems.schema import problem_from_row
from recipe.run.errors import DataError

ROWS = {
    "maths": {
        "id": "m/0",
        "problem": "What is $1+1$?",
        "answer": "2",
        "solution": "Count <image>.",
    },
    "choice": {"problem": "Even?\n\n(A) 1\n(B) 2", "answer": "B"},
    "program": {"problem": "Write f that gives 1.", "answer": "import math\nassert f() == 1"},
}
TINY = REPOSITORY / "data" / "tiny"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads files as verl's trainer does, with the embedded tokenizer."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    logging.getLogger("datasets").setLevel(logging.ERROR)
    tokenizer = AutoTokenizer.from_pretrained(TINY / "base")
    config = {"cache_dir": str(tmp_path), "max_prompt_length": 2048, "return_raw_chat": True}
    return lambda *files: RLHFDataset(list(map(str, files)), tokenizer, OmegaConf.create(config))


def prepared(folder, kind):
    source, target = folder / f"{kind}.jsonl", folder / f"{kind}.parquet"
    source.write_text(json.dumps(ROWS[kind]) + "\n")
    main_prepare.main([str(source), str(target), "--kind", kind])
    return target


@pytest.mark.parametrize("kind", ROWS)
def test_a_prepared_file_is_read_whole(tmp_path, load, kind):
    path = prepared(tmp_path, kind)
    data = load(path)
    (problem,) = read_problems(path)
    assert [problem_from_row(data[n]) for n in range(len(data))] == [problem]
    assert data[0]["index"] == problem.id
    assert data[0]["reward_model"] == {
        "style": "rule",
        "ground_truth": ROWS[kind]["answer"],
        "kind": kind,
    }


def test_files_of_all_kinds_and_the_embedded_problems_are_read_together(tmp_path, load):
    files = [*(prepared(tmp_path, kind) for kind in ROWS), TINY / "val_easy.parquet"]
    data = load(*files)
    problems = [problem for path in files for problem in read_problems(path)]
    assert [problem_from_row(data[n]) for n in range(len(data))] == problems
    assert [problem.kind for problem in problems[:4]] == ["maths", "choice", "program", "maths"]


def with_columns(path, row_id, **columns):
    row = make_row("1+1?", "2", solution="Count.", row_id=str(row_id)) | columns
    row["extra_info"]["index"] = row_id
    pq.write_table(pa.Table.from_pylist([row]), path)
    return path


@pytest.mark.parametrize(
    ("first", "second", "is_alike"),
    [
        ({}, {}, True),
        ({"hint_level_1": "a"}, {"hint_level_1": None}, True),
        ({"hint_level_1": "a"}, {}, True),
        ({"hint_level_1": "a"}, {"hint_level_1": ["a"]}, False),
        ({"row_id": 7}, {"row_id": "x"}, False),  # a release's file and an own one
        ({"solution": None}, {"solution": "Count."}, True),
    ],
)
def test_files_that_verl_cannot_put_together_are_refused_before_the_start(
    tmp_path, load, first, second, is_alike
):
    paths = [
        with_columns(tmp_path / f"{number}.parquet", **({"row_id": f"id {number}"} | columns))
        for number, columns in enumerate((first, second))
    ]
    files = [DataFile(str(path), []) for path in paths]
    if is_alike:
        check_alike(files, "data.train_files")
        assert len(load(*paths)) == 2
    else:
        with pytest.raises(DataError, match="1.parquet and .*0.parquet .* cannot be put"):
            check_alike(files, "data.train_files")
        with pytest.raises(ValueError, match="features"):
            load(*paths)
