"""Text the embedded model has never seen: nothing parses, nothing is right, the run goes on."""

import json
import subprocess
import sys

import pytest
from runs import ROOT, train

pytestmark = pytest.mark.long
LENGTHS = (
    "data.max_prompt_length=640",
    "actor_rollout_ref.rollout.prompt_length=700",
    "actor_rollout_ref.rollout.max_model_len=2048",
)


def prepare(folder):
    """Eight word problems with LaTeX, one without a solution, through the real command."""
    rows = [
        {
            "id": f"text/{index}",
            "problem": f"A shelf holds {index + 3} rows of {index + 2} jars. How many is that?",
            "solution": f"Multiply: $ {index + 3} \\times {index + 2} = \\frac{{"
            f"{2 * (index + 3) * (index + 2)}}}{{2}}$.",
            "answer": str((index + 3) * (index + 2)),
        }
        for index in range(8)
    ]
    rows[5]["solution"] = ""
    source, target = folder / "text.jsonl", folder / "text.parquet"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = subprocess.run(
        [sys.executable, str(ROOT / "recipe/hint/main_prepare.py"), str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def test_every_failed_hint_is_counted_with_its_reason_and_the_group_is_kept(tmp_path):
    data = prepare(tmp_path)
    run = train(
        tmp_path / "run",
        "trainer.method=sage",
        "trainer.total_training_steps=3",
        f"data.train_files={data}",
        *LENGTHS,
    )
    assert run.code == 0, run.err
    assert len(run.records) == 3 * 8
    for record in run.records:
        assert record["accepted_level"] == 0 or "ok" in {
            done["hint_status"] for done in record["rounds"]
        }
        assert len(record["rows"]) == 4
    without_solution = [row for row in run.records if row["problem_id"] == "text/5"]
    statuses = [[done["hint_status"] for done in row["rounds"]] for row in without_solution]
    assert statuses == [["none", "missing_solution"]] * 3
    for row in run.metrics:
        failed = row["hint/parse_failed"] + row["hint/missing_solution"]
        assert row["hint/generate_failed"] == failed
        assert row["hint/generate_requested"] == row["hint/generate_success"] + failed
        assert row["hint/missing_solution"] == 1
