"""What a part of the GPU check must show."""

import json

import pytest
from gpu_parts import numbers_of


@pytest.mark.parametrize(
    ("name", "tokens", "says"),
    [("resume", 2, None), ("resume", 3, "other prompts: .*1, 'p'"), ("fp32", 2, "weights differ")],
)
def test_a_part_shows_what_it_must(name, tokens, says, tmp_path):
    numbers = {f"training/rollout_probs_diff_{key}": 1e-4 for key in ("mean", "max")}
    for folder, count in (("reference", 2), (name, tokens)):
        (tmp_path / folder).mkdir()
        line = {"step": 1, "problem_id": "p", "rounds": [{"tokens": count}]}
        (tmp_path / folder / "records.jsonl").write_text(json.dumps(line) + "\n")
        row = {"step": 1, "timing_s/step": 1.0, **numbers}
        (tmp_path / folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    if says:
        with pytest.raises(AssertionError, match=says):
            numbers_of(name, "cpu", tmp_path)
    else:
        assert numbers_of(name, "cpu", tmp_path)["equal prompts"] == "1 of 1"
