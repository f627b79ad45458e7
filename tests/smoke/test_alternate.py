"""Two policies as one run on the real stack: who is served, and who changes."""

import subprocess
import sys
from pathlib import Path

import pytest
from runs import ROOT, SMALL, Run, environment, processes_of

from recipe.run.whole_file import file_sha256

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
WEIGHTS = "model.safetensors"
MADE = "solver/checkpoints/global_step_1", "guide/checkpoints/global_step_1"


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
    # What was served is what the other role had come to, and the base in the first phase.
    served = [line.split() for line in (folder / "server.log").read_text().splitlines()]
    models = [words[words.index("--model") + 1] for words in served if words[:1] == ["$"]]
    base, solver, guide = (
        str(ROOT / "data/two_turn/base"),
        *(f"{folder}/{at}/merged" for at in MADE),
    )
    assert [Path(each).resolve() for each in models] == [Path(e) for e in (base, solver, guide)]
    # All have changed, and not in the same way; the solver went on in its second phase.
    later = f"{folder}/solver/checkpoints/global_step_2/merged"
    assert len({file_sha256(f"{each}/{WEIGHTS}") for each in (base, solver, guide, later)}) == 4
    for role, steps in (("solver", 2), ("guide", 1)):
        run = Run(0, "", "", folder / role)
        assert [row["step"] for row in run.metrics] == list(range(1, steps + 1))
        assert all(row["training/rollout_probs_diff_mean"] <= 1e-6 for row in run.metrics)
        for record in run.records:
            roles = {record["rounds"][place[0]]["role"] for place in record["rows"]}
            assert roles == {role}
