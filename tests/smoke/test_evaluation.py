"""``trainer.eval_only=true`` on real replicas, killed in the middle."""

import json
import os
import signal

import pytest
from runs import ROOT, started, train, wait_for

pytestmark = pytest.mark.slow
SETTINGS = ("trainer.eval_only=true", f"data.val_files={ROOT / 'data/tiny/val_easy.parquet'}")


def samples_of(folder):
    rows = [
        json.loads(line)
        for path in (folder / "evaluation/samples").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return {(row["benchmark"], row["id"], row["sample"]): row for row in rows}, len(rows)


def num_written(folder):
    files = (folder / "evaluation/samples").glob("*.jsonl")
    return sum(path.read_bytes().count(b"\n") for path in files)


def test_a_killed_evaluation_ends_with_every_sample_once(tmp_path):
    folder = tmp_path / "run"
    with started(folder, *SETTINGS) as process:
        wait_for(lambda: num_written(folder) > 100, "100 samples", process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before, _ = samples_of_whole_lines(folder)
    assert 100 < len(before) < 400

    run = train(folder, *SETTINGS)
    assert run.code == 0, run.err
    after, num_lines = samples_of(folder)
    # 100 problems x 4 samples.
    assert num_lines == len(after) == 100 * 4
    assert {key: after[key] for key in before} == before
    results = json.loads((folder / "evaluation/results.json").read_text())
    total = sum(row["score"] for row in after.values())
    assert results["benchmarks"]["tiny/easy"]["avg"] == pytest.approx(total / 400)
    assert "tiny/easy" in run.out


def samples_of_whole_lines(folder):
    rows = [
        json.loads(line)
        for path in (folder / "evaluation/samples").glob("*.jsonl")
        for line in path.read_bytes().rpartition(b"\n")[0].splitlines()
    ]
    return {(row["benchmark"], row["id"], row["sample"]): row for row in rows}, len(rows)
