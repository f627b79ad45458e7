"""Files in the layouts that people bring: each writes a small file and says what is found in it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PAIRS = [(a, b) for a in range(2, 10) for b in range(3, 7)]  # 32 problems
HASHES = ' Let\'s think step by step and output the final answer after "####".'


def ask(a, b):
    return f"A shelf holds {a} rows of {b} jars. How many jars are on the shelf?"


def work(a, b):
    return f"There are {a} rows of {b} jars, so {a} * {b} = {a * b} jars."


def user(text):
    return [{"role": "user", "content": text}]


def truth(a, b):
    return {"style": "rule", "ground_truth": str(a * b)}


# Name -> the row of one pair; the text, the solution and the truth are found at ...
LAYOUTS = {
    "verl_gsm8k": (
        lambda a, b: {
            "data_source": "openai/gsm8k",
            "prompt": user(ask(a, b) + HASHES),
            "ability": "math",
            "reward_model": truth(a, b),
            "extra_info": {
                "split": "train",
                "index": 10 * a + b,
                "answer": f"{work(a, b)}\n#### {a * b}",
                "question": ask(a, b),
            },
        },
        ("extra_info.question", "extra_info.answer", "reward_model.ground_truth"),
    ),
    "least": (
        lambda a, b: {
            "data_source": "mine",
            "prompt": [{"role": "system", "content": "Answer in \\boxed{}."}, *user(ask(a, b))],
            "reward_model": truth(a, b),
        },
        ("the last user turn", "none", "reward_model.ground_truth"),
    ),
    "prompt_and_answer_alone": (
        lambda a, b: {"prompt": ask(a, b) + " Put it in \\boxed{}.", "answer": a * b},
        ("the last user turn", "none", "answer"),
    ),
    "question_and_other_columns": (
        lambda a, b: {
            "prompt": user(ask(a, b)),
            "question": ask(a, b),
            "solution": work(a, b),
            "reward_model": truth(a, b),
            "extra_info": {"index": 0},  # the same for all
            "level": a,
            "sources": [{"name": "book", "page": b}],
        },
        ("question", "solution", "reward_model.ground_truth"),
    ),
    "list_of_truths": (
        lambda a, b: {
            "data_source": "mine",
            "prompt": user(ask(a, b)),
            "problem": None,
            "reward_model": {"ground_truth": [str(a * b)], "style": "rule"},
            "extra_info": {"index": f"u-{a}-{b}", "solution": work(a, b), "answer": str(a * b)},
        },
        ("the last user turn", "extra_info.solution", "reward_model.ground_truth"),
    ),
    "floats_and_gaps": (
        lambda a, b: {
            "prompt": user(ask(a, b)),
            "problem": ask(a, b),
            "answer": float(a * b),
            "solution": work(a, b) if a > 3 else None,
            "data_source": None,
            "reward_model": {"style": "rule", "ground_truth": None},
            "extra_info": {"index": float(10 * a + b), "question": "another"},
        },
        ("problem", "solution", "answer"),
    ),
    "names_of_verls_batches": (
        lambda a, b: {
            "data_source": "mine",
            "prompt": user(ask(a, b)),
            "raw_prompt": ask(a, b),
            "responses": ["a", "b"],
            "input_ids": [a, b],
            "attention_mask": [1, 1],
            "validate": True,
            "uid": f"{a}",
            "index": a,
            "metrics": json.dumps({"a": a}),
            "reward_model": truth(a, b),
            "extra_info": {"index": 10 * a + b, "solution": work(a, b)},
        },
        ("the last user turn", "extra_info.solution", "reward_model.ground_truth"),
    ),
    "solution_elsewhere": (
        lambda a, b: {
            "data_source": "mine",
            "prompt": user(ask(a, b)),
            "reward_model": truth(a, b),
            "extra_info": {"index": str(10 * a + b), "trace": {"text": work(a, b)}},
        },
        ("the last user turn", "extra_info.trace.text", "reward_model.ground_truth"),
    ),
}
SOLUTION_KEYS = {"solution_elsewhere": "extra_info.trace.text"}


def write_layout(name: str, folder: Path) -> Path:
    """Write the file of one layout into ``folder``."""
    path = folder / f"{name}.parquet"
    make, _ = LAYOUTS[name]
    pq.write_table(pa.Table.from_pylist([make(a, b) for a, b in PAIRS]), path)
    return path
