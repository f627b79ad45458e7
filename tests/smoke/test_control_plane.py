"""The control-plane command: all of a run is real but the model and the update."""

import json
import subprocess
import sys

import pytest
from runs import ROOT, environment

pytestmark = pytest.mark.long
MAIN = ROOT / "recipe/hint/main_bench.py"


def control(folder, *options):
    return subprocess.run(
        [
            *(sys.executable, str(MAIN), "control", "hardware=laptop", f"hint.run_dir={folder}"),
            *("control.sizes=[16]", "control.steps=2", "control.tokens=200", *options),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(folder),
        check=False,
    )


# Graded are a group of 8 and, of mlmt, its refinements; the feedback between them trains too.
@pytest.mark.parametrize(("method", "num_graded", "num_rows"), [("sage", 8, 8), ("mlmt", 16, 24)])
def test_a_run_without_a_model_counts_every_part_of_the_step(
    tmp_path, method, num_graded, num_rows
):
    done = control(tmp_path, f"trainer.method={method}")
    assert done.returncode == 0, done.stderr
    records = [
        json.loads(line) for line in (tmp_path / "16/records.jsonl").read_text().split("\n")[:-1]
    ]
    # A guess solves a quarter, so some groups have a right response, and no group's is lost.
    assert len({record["uid"] for record in records}) == len(records) == 2 * 16
    assert all(len(record["accuracies"]) == num_graded for record in records)
    assert 0 < sum(map(sum, (record["accuracies"] for record in records))) < 2 * 16 * num_graded
    _, second = (
        json.loads(line) for line in (tmp_path / "16/control.jsonl").read_text().split("\n")[:-1]
    )
    assert {name.split()[0] for name in second["parts"]} == {"ours", "verl", "simulated"}
    assert sum(second["parts"].values()) <= second["step_s"] + 1e-3
    # Of each response at least its ids, mask, log-probabilities and positions cross the queue.
    least = 16 * num_rows * 200 * (8 + 8 + 4 + 8)
    assert second["worker_bytes"] > least
    assert {"ControlWorker", "ControlRunner", "SimpleStorageUnit"} <= set(second["peak_mib"])
    assert "prompts | driver: ours s | verl's s" in done.stdout


def test_a_critic_which_is_not_simulated_is_refused(tmp_path):
    done = control(tmp_path, "trainer.method=archer")
    assert done.returncode == 2, done.stderr
    assert "no critic is simulated, and trainer.method=archer trains one" in done.stderr
