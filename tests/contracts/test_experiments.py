"""Every file of configs/experiment composes and passes the checks before the start."""

import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.hint import main_hint
from recipe.hint.hints.teacher_cache import Answer, AnswerCache
from recipe.hint.runtime.preflight import machine as preflight_machine

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "configs/experiment").glob("*.yaml"))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """The embedded model with the positions of a large one."""
    folder = tmp_path_factory.mktemp("model") / "base"
    shutil.copytree(ROOT / "data/tiny/base", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32768}))
    return folder


@pytest.fixture(scope="module")
def train_file(tmp_path_factory):
    """The embedded problems with hints in columns."""
    path = tmp_path_factory.mktemp("data") / "train.parquet"
    table = pq.read_table(ROOT / "data/tiny/train.parquet")
    for level in (1, 2, 3):
        table = table.append_column(f"hint_level_{level}", pa.array(["a hint."] * len(table)))
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_says_what_it_would_run(
    name, stand_in, train_file, composed_once, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(preflight_machine, "num_gpus", lambda *_: 8)
    monkeypatch.setattr(main_hint, "has_gpu", lambda: True)
    argv = [
        "main_hint.py",
        f"experiment={name}",
        "preflight_only=true",
        f"actor_rollout_ref.model.path={stand_in}",
        f"data.train_files={train_file}",
        f"data.val_files={ROOT / 'data/tiny/val_easy.parquet'}",
        f"hint.run_dir={tmp_path}",
    ]
    if name.endswith("teacher"):
        # With an answer in the cache, nobody has to be there.
        AnswerCache(tmp_path / "answers").put("key", Answer("text", 1, 1))
        argv += ["hint.teacher.base_url=http://localhost:8000/v1", "hint.teacher.model=any"]
        argv += [f"hint.teacher.cache_dir={tmp_path}/answers"]
    monkeypatch.setattr(sys, "argv", argv)
    main_hint.main()
    lines = capsys.readouterr().out.splitlines()
    for start, words in says(name).items():
        line = next(line for line in lines if line.startswith(start))
        assert [word for word in words if word not in line] == [], line


def says(name):
    """What the summary must hold: method, source and cost follow from the file's name."""
    group = 32 if name.startswith("fig3") else 4 if "qwen3" in name or "fig5" in name else 8
    batch = 32 if name.startswith("fig3") else 112 if name.startswith("ghpo") else 128
    source = {"teacher": "teacher", "offline": "dataset", "scaf": "dataset", "ten": "dataset"}
    default = "solution_prefix" if name == "ghpo_ghpo" else "self_generated"
    hints = "without hints" if name.endswith("grpo") else source.get(name.split("_")[-1], default)
    return {
        "method": [hints],
        "cost": [f"{batch * group:,} answers a step"],
        "devices": ["8 cuda"],
    }


def test_each_header_names_its_table_row_hardware_number_and_hours():
    for name in NAMES:
        text = (ROOT / f"configs/experiment/{name}.yaml").read_text()
        header = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        for word in ("arXiv:", "Hardware:", "Reported:", "Hours:"):
            assert word in header, (name, word)
