"""The notebook: its cells in order, as a kernel runs them; in git without what they printed."""

import json
import os
import subprocess
import sys

import pytest
from runs import ROOT

NOTEBOOK = ROOT / "docs/quickstart.ipynb"
CELLS = [
    cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"
]


def test_the_notebook_holds_no_output():
    assert [cell["outputs"] for cell in CELLS] == [[]] * len(CELLS)
    assert {cell["execution_count"] for cell in CELLS} == {None}


def test_the_cell_that_reads_the_run_prints_its_curve_and_its_hints(tmp_path, capsys):
    [cell] = [source for cell in CELLS if "read_run" in (source := "".join(cell["source"]))]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("{trainer: {method: sage}, data: {val_files: []}}")
    rows = [
        {"step": 0, "val-core/tiny/hard/acc/mean@8": 0.25},
        {"step": 1, "hint/prompts_with_hint": 12},
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    exec(cell, {"WORK": tmp_path})
    said = capsys.readouterr().out
    assert "tiny/hard [(0, 0.25)]" in said
    assert "prompts trained under a hint, per step: [(1, 12)]" in said


@pytest.mark.long
def test_the_cells_run_from_top_to_bottom(tmp_path):
    # One process and one namespace for all, without the notebook's own programs.
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in CELLS), encoding="utf-8")
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"STEPS": "2", "WORK": str(work), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "step 2/2" in done.stdout
    assert "tiny/hard [(0, " in done.stdout
    assert "level 3: " in done.stdout
    for name in ("page.html", "model/model.safetensors", "ask-trained/asked.json"):
        assert (work / name).is_file(), name
