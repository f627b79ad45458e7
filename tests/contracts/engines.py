"""What the processes with a real vLLM engine share: the model, prompts, and the reference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "data/tiny/base"
# vLLM with the settings of the laptop preset.
ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "distributed_executor_backend": "uni",
    "max_model_len": 256,
    "max_num_seqs": 64,
    "worker_extension_cls": "recipe.laptop.rollout.CpuWorkerExtension",
    "logprobs_mode": "processed_logprobs",
}


def run_process(script: str, *args: str, timeout_s: float = 900) -> Any:
    """The JSON value on the last line that ``script`` (of this folder) prints."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *args],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr[-4000:] or done.stdout[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def environment() -> dict[str, str]:
    """That of a process of a CPU run."""
    from recipe.run.environment import CPU_ENVIRONMENT, QUIET_ENVIRONMENT

    # One thread: on a busy machine several wait for the slowest at every layer.
    own = {
        "PYTHONPATH": f"{ROOT}:{ROOT}/tests",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "OMP_NUM_THREADS": "1",
    }
    # Part of the name of the socket that weights come through: another run may be under way.
    own["VERL_RAY_JOB_ID"] = f"contracts-{uuid4().hex[:8]}"
    return os.environ | CPU_ENVIRONMENT | QUIET_ENVIRONMENT | own


def prompts(count: int) -> list[list[int]]:
    """Token ids of the first training problems, as the rollouts see them."""
    import pyarrow.parquet as pq
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(BASE)
    rows = pq.read_table(ROOT / "data/tiny/train.parquet").slice(0, count).to_pylist()
    return [
        list(
            tokenizer.apply_chat_template(
                row["prompt"], add_generation_prompt=True, return_dict=False
            )
        )
        for row in rows
    ]


def reference_log_probs(model: Any, prompt_ids: Sequence[int], answer: Sequence[int]) -> list:
    """Log-probs of the answer's tokens in one fp32 forward of transformers."""
    import torch

    ids = torch.tensor([[*prompt_ids, *answer]])
    with torch.no_grad():
        logits = model(ids).logits[0, len(prompt_ids) - 1 : -1]
    return torch.log_softmax(logits, -1).gather(1, ids[0, len(prompt_ids) :, None])[:, 0].tolist()
