"""``trainer.eval_only=true`` on real replicas, killed in the middle."""

import json

import pytest
from runs import ROOT, train

from recipe.problems.columns import read_problems
from recipe.study.evaluate import evaluation_settings
from recipe.study.results import response_path

SETTINGS = ("trainer.eval_only=true", f"data.val_files={ROOT / 'data/tiny/val_easy.parquet'}")


def samples_of(folder):
    rows = [
        json.loads(line)
        for path in (folder / "evaluation/samples").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return {(row["benchmark"], row["id"], row["sample"]): row for row in rows}, len(rows)


@pytest.mark.slow
def test_an_evaluation_draws_what_a_killed_one_left_and_keeps_what_it_had(tmp_path, composed):
    """40 problems are done, of one 3 of 4 responses, and of the next half a line is on disk."""
    path = ROOT / "data/tiny/val_easy.parquet"
    folder = tmp_path / "run" / "evaluation"
    config = composed("hardware=laptop", *SETTINGS)
    (folder / "samples").mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(evaluation_settings(config)))
    verdict = {"score": 1.0, "reason": "correct", "extracted": "7", "basis": "", "ignored": ""}
    response = {"response": "kept", "response_tokens": 1, "is_truncated": False}
    cost = {"prompt_tokens": 9, "seconds": 0.5}
    with open(response_path(folder, "tiny/easy"), "w") as file:
        for number, problem in enumerate(read_problems(path)[:41]):
            for each in range(4 if number < 40 else 3):
                key = {"benchmark": "tiny/easy", "id": problem.id, "sample": each, "seed": each}
                file.write(json.dumps({**key, **verdict, **response, **cost}) + "\n")
    before, num_before = samples_of(folder.parent)
    assert num_before == 163
    with open(response_path(folder, "tiny/easy"), "a") as file:
        file.write('{"benchmark": "tiny/ea')

    run = train(folder.parent, *SETTINGS)
    assert run.code == 0, run.err
    after, num_lines = samples_of(folder.parent)
    assert num_lines == len(after) == 100 * 4  # problems x responses
    results = json.loads((folder / "results.json").read_text())
    total = sum(row["score"] for row in after.values())
    assert results["benchmarks"]["tiny/easy"]["avg"] == pytest.approx(total / 400)
    assert "tiny/easy" in run.out
    assert {key: after[key] for key in before} == before
    # The model has other responses than the one that was put there.
    assert sum(row["response"] == "kept" for row in after.values()) == 163
