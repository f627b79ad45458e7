"""Two policies as one run on the real stack: who is served, and who changes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from runs import ROOT, SMALL, Run, environment, processes_of

from recipe.study.alternate import weights_sha256
from recipe.study.export import export_model

pytestmark = pytest.mark.long
COMMAND = [
    *(sys.executable, str(ROOT / "recipe/hint/main_alternate.py"), "experiment=two_turn", *SMALL),
    *("trainer.method=mlmt", "hint.mlmt.t_low=1", "hint.mlmt.t_high=1"),
    *("trainer.total_training_steps=3", "trainer.save_freq=1", "trainer.max_actor_ckpt_to_keep=3"),
    # The embedded base never refines rightly: first answers train the solver, leaks the guide.
    *("hint.mlmt.solver_credit=score", "hint.mlmt.leak_penalty=1"),
    *("hint.mlmt.guide_max_tokens=24", "data.max_response_length=24"),
    "actor_rollout_ref.rollout.temperature=1.5",
    # The embedded tokenizer spells the guide's instructions out.
    "actor_rollout_ref.rollout.prompt_length=420",
]


def sha256_of(folder: Path, role: str, step: int) -> str | None:
    """Of the weights in a checkpoint."""
    target = folder.parent / f"again-{role}-{step}"
    export_model(folder / role / f"checkpoints/global_step_{step}", target, "fp32")
    return weights_sha256(target)


def test_two_policies_change_in_their_own_phases(tmp_path):
    folder = tmp_path / "two"
    done = subprocess.run(
        [*COMMAND, f"hint.run_dir={folder}"],
        capture_output=True,
        text=True,
        timeout=900,
        env=environment(folder),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert processes_of(folder) == []
    phases = json.loads((folder / "phases.json").read_text())["phases"]
    # What was served was the checkpoint of the phase before, and the base in the first phase.
    base = weights_sha256(ROOT / "data/two_turn/base")
    made = ("solver", 1), ("guide", 1), ("solver", 2)
    solver, guide, later = (sha256_of(folder, *at) for at in made)
    served = [(row["served"], row["sha256"]) for row in phases]
    assert served == [("guide-0", base), ("solver-1", solver), ("guide-1", guide)]
    # Both have changed, and not in the same way; the solver went on in its second phase.
    assert len({base, solver, guide, later}) == 4
    assert sorted(path.name for path in (folder / "exports").iterdir()) == ["guide-1", "solver-2"]
    for role, steps in (("solver", 2), ("guide", 1)):
        run = Run(0, "", "", folder / role)
        assert [row["step"] for row in run.metrics] == list(range(1, steps + 1))
        assert all(row["training/rollout_probs_diff_mean"] <= 1e-6 for row in run.metrics)
        for record in run.records:
            roles = {record["rounds"][place[0]]["role"] for place in record["rows"]}
            assert roles == {role}
