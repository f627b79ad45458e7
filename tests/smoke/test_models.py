"""Two steps of SAGE on random weights in the shape of real models, fp32, on the CPU.

Run on demand: ``pytest -m long tests/smoke/test_models.py``. Set
``HINT_MODELS_DTYPE=bfloat16`` to see what bf16 does; then the agreement is printed, not checked.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from random_model import FAMILIES, build_model
from runs import ROOT, check_records, check_weights, train

STEPS, PROMPTS = 2, 4
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
SETTINGS = (
    "trainer.method=sage",
    "hint.source=solution_prefix",
    f"trainer.total_training_steps={STEPS}",
    f"reward.custom_reward_function.path={Path(__file__).with_name('counted_reward.py')}",
    "data.max_prompt_length=224",
    "data.max_response_length=24",
    # Small: every token has 130,000 to 260,000 logits.
    f"data.train_batch_size={PROMPTS}",
    f"{ACTOR}.ppo_mini_batch_size={PROMPTS}",
    f"{ROLLOUT}.prompt_length=288",
    f"{ACTOR}.ppo_max_token_len_per_gpu=640",
    f"{ROLLOUT}.log_prob_max_token_len_per_gpu=640",
)
BF16 = (
    f"{ROLLOUT}.dtype=bfloat16",
    f"{ACTOR}.fsdp_config.dtype=bfloat16",
    f"{ACTOR}.fsdp_config.mixed_precision.param_dtype=bf16",
)


def prepare(folder):
    """Sixteen word problems, through the real command, which gives each a system turn."""
    source, target = folder / "text.jsonl", folder / "text.parquet"
    rows = [
        {
            "id": f"text/{a}",
            "problem": f"A shelf holds {a} rows of {a - 1} jars. How many jars are that?",
            "solution": f"Multiply {a} by {a - 1}.\n\nThat is $\\boxed{{{a * (a - 1)}}}$.",
            "answer": str(a * (a - 1)),
        }
        for a in range(3, 19)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(ROOT / "recipe/hint/main_prepare.py"), str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def attention(name):
    return "eager" if FAMILIES[name].model_type == "gemma2" else "sdpa"


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_sage_runs_on_a_model_in_the_shape_of(name, tmp_path):
    model, data = tmp_path / "model", prepare(tmp_path)
    build_model(model, name)
    is_bf16 = os.environ.get("HINT_MODELS_DTYPE") == "bfloat16"
    run = train(
        tmp_path / "run",
        *SETTINGS,
        *(BF16 if is_bf16 else ()),
        *os.environ.get("HINT_MODELS_SETTINGS", "").split(),
        f"data.train_files={data}",
        f"data.val_files={data}",
        f"actor_rollout_ref.model.path={model}",
        f"actor_rollout_ref.model.override_config.attn_implementation={attention(name)}",
    )
    assert run.code == 0, run.err
    for row in run.metrics:
        shown = {k: v for k, v in row.items() if "probs_diff" in k or "rollout_corr" in k}
        sys.stdout.write(f"{name} {row['step']} {row['actor/grad_norm']} {json.dumps(shown)}\n")
    check_records(run, STEPS, prompts=PROMPTS)
    if not is_bf16:
        check_weights(run, STEPS)
    levels = [record["accepted_level"] for record in run.records]
    assert min(levels) == 0 < max(levels)
