"""verl's own data set class reads the files that main_prepare.py writes, and keeps every field."""

import json
import logging
import re
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
import verl
from layouts import LAYOUTS, SOLUTION_KEYS, write_layout
from omegaconf import OmegaConf
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

from recipe import REPOSITORY
from recipe.hint import main_prepare
from recipe.hint.adapter.dataset import RowDataset
from recipe.problems.columns import MEDIA, RESERVED, read_problems
from recipe.problems.schema import problem_from_row

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
    return lambda *files, of=RLHFDataset: of(
        list(map(str, files)), tokenizer, OmegaConf.create(config)
    )


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


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_problems_that_the_preflight_saw(tmp_path, load, name):
    path, key = write_layout(name, tmp_path), SOLUTION_KEYS.get(name, "")
    data = load(path, of=RowDataset)
    batch = tu.get_tensordict(collate_fn([data[n] for n in range(len(data))]))
    assert not RESERVED & set(data.dataframe.column_names)
    rows = [
        {column: tu.unwrap_non_tensor_data(batch[column][n]) for column in batch.keys()}
        for n in range(len(batch))
    ]
    seen, known = [problem_from_row(row, key) for row in rows], read_problems(path, key)
    for one, other in zip(seen, known, strict=True):
        for what in ("id", "messages", "text", "solution", "answer", "kind", "data_source"):
            assert getattr(one, what) == getattr(other, what)
    assert all(row["data_source"] is not None for row in rows)
    assert all("reward_model" in row for row in rows)


# Names that verl's trainers, its workers and its queue give to fields of a batch; some of those of
# `data` are settings.
_FIELD = re.compile(
    r"(?:batch|data|batch_dict|fields?|row_dict|output)(?:\[|\.pop\(|\.get\()\"(\w+)\""
)
_KEPT = {"prompt", "data_source", "reward_model", "extra_info", "index"}


def test_the_closed_list_has_every_name_that_verls_batches_and_a_tensordict_use():
    root = Path(verl.__file__).parent
    files = [*root.glob("trainer/ppo/v1/*.py"), root / "utils/dataset/rl_dataset.py"]
    files += [root / "experimental/agent_loop/agent_loop.py"]
    used = {name for file in files for name in _FIELD.findall(file.read_text("utf-8"))}
    settings = OmegaConf.load(root / "trainer/config/_generated_ppo_trainer.yaml").data
    assert len(used) > 30
    assert sorted(used - RESERVED - _KEPT - set(MEDIA) - set(settings)) == []
    # A TensorDict takes any name for a column of texts: none has to be reserved for its sake.
    for name in dir(TensorDict):
        column = np.array(["a", "b"], dtype=object)
        batch = tu.get_tensordict({"dummy_tensor": torch.zeros(2, 1), name: column})
        assert [tu.unwrap_non_tensor_data(each) for each in batch[name]] == ["a", "b"]
