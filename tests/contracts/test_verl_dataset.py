"""verl's own data set class reads the files that main_prepare.py writes, and keeps every field."""

import json
import logging

import datasets
import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.utils.dataset.rl_dataset import RLHFDataset

from recipe.hint import main_prepare
from recipe.hint.command.compose import REPOSITORY
from recipe.hint.problems.columns import read_problems
from recipe.hint.schema import problem_from_row

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
