"""The benchmark's command on the embedded world: arms share weights, problems and seeds."""

import json
import subprocess
import sys

import pytest
from runs import ROOT, SMALL, environment

pytestmark = pytest.mark.long
MAIN = ROOT / "recipe/hint/main_bench.py"


def bench(folder, *arguments, timeout_s=1500):
    preset = [each for each in SMALL if not each.startswith("trainer.")]
    return subprocess.run(
        [sys.executable, str(MAIN), "hardware=laptop", *preset, f"hint.run_dir={folder}"]
        + list(arguments),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment(folder),
        check=False,
    )


def test_all_arms_of_a_round_sample_the_same_answers_at_level_zero(tmp_path):
    arms = ["grpo", "sage"]
    done = bench(
        tmp_path,
        f"bench.arms=[{','.join(arms)}]",
        *("bench.steps=1", "bench.warmup=0"),
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "bench.jsonl").read_text().splitlines()]
    assert [row["arm"] for row in rows] == arms
    grpo, sage = rows
    # Seeds and weights are the same: level 0 leaves the same problems unresolved.
    assert grpo["unresolved"] == sage["unresolved"] >= 1
    assert (grpo["discarded_tokens"], grpo["hint_tokens"]) == (0, 0)
    assert sage["hint_tokens"] > 0 and sage["discarded_tokens"] > 0
    assert set(json.loads((tmp_path / "bench.json").read_text())["arms"]) == set(arms)
    assert "rollout_ratio.median" in done.stdout
