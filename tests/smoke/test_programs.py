"""Programs in several turns on the embedded model: prepared, run, counted; their tests stay hidden.

The embedded model writes no program, so every failure has a reason of its own to be counted by;
programs that are right or wrong are played in unit/methods/test_programs_in_turns.py.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from runs import ROOT, check_probabilities, train

pytestmark = pytest.mark.long
SETTINGS = (
    "trainer.total_training_steps=2",
    "data.max_prompt_length=400",
    "actor_rollout_ref.rollout.prompt_length=1000",
    "actor_rollout_ref.rollout.max_model_len=1100",
)
# In no problem's text: a prompt that holds it has it from the tests.
SECRET = "90210"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Eight programs to write, with tests that the problems do not show."""
    folder = tmp_path_factory.mktemp("programs")
    rows = [
        {
            "id": f"add/{n}",
            "problem": f"Write add_{n}(x), which adds {n}.",
            "answer": f"assert add_{n}({SECRET}) == {int(SECRET) + n}, 'not {SECRET} plus {n}'",
            "solution": f"```python\ndef add_{n}(x):\n    return x + {n}\n```",
        }
        for n in range(8)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    prepare = [
        sys.executable,
        str(ROOT / "recipe/hint/main_prepare.py"),
        str(folder / "rows.jsonl"),
    ]
    subprocess.run([*prepare, str(folder / "rows.parquet"), "--kind", "program"], check=True)
    return folder / "rows.parquet"


@pytest.mark.parametrize(("method", "turns"), [("score", 2), ("mlmt", 3)])
def test_programs_train_every_turn_and_no_prompt_shows_their_tests(
    programs, tmp_path, method, turns
):
    prompts = tmp_path / "prompts.jsonl"
    run = train(
        tmp_path / "run",
        *SETTINGS,
        f"trainer.method={method}",
        f"hint.{method}.stage1_steps=1",
        f"data.train_files={programs}",
        f"data.val_files={programs}",
        env={
            "HINT_TEST_FAULT": f"prompts:{prompts}",
            "VERL_USE_EXTERNAL_MODULES": "recipe.laptop.plugin,sabotage",
            "PYTHONPATH": str(Path(__file__).parent),
        },
    )
    assert run.code == 0, run.err
    check_probabilities(run, 2)
    # No program is right, and the policy is still the reference: nothing to learn, nothing learnt.
    assert [row["actor/grad_norm"] for row in run.metrics] == [0, 0]
    kept = [json.loads(line) for line in prompts.read_text().splitlines()]
    # The preflight plays one conversation; then 2 steps x 8 problems, 4 conversations each.
    assert [len(each) for each in kept] == [turns] + [4 * turns] * 16
    assert SECRET not in prompts.read_text()
    graded = 4 * 2  # of each conversation the first and the last turn
    for record in run.records:
        assert sum(record["reasons"].values()) == graded
        assert set(record["reasons"]) <= {"no_answer", "malformed", "wrong", "truncated"}
