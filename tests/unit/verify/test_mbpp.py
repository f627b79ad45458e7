"""The sanitized MBPP: every reference program passes, and no idle program does."""

from __future__ import annotations

import ast
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from recipe.hint.schema import Item
from recipe.hint.verify import VerifierPool

FOLDER = os.environ.get("HINT_BENCHMARK_DATA")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER, reason="set HINT_BENCHMARK_DATA to the folder with mbpp_sanitized.jsonl"
    ),
]


def reasons_of(make_code):
    """How often each reason occurs when ``make_code`` writes the program of a row."""
    path = Path(FOLDER or "") / "mbpp_sanitized.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    items = [
        Item(f"```python\n{make_code(row)}\n```", "\n".join(row["tests"]), False, "program")
        for row in rows
    ]
    with VerifierPool(2, 30.0) as pool:
        verdicts = pool.grade_many_blocking(items, [row["id"] for row in rows])
    return Counter(verdict.reason for verdict in verdicts)


def stub(row):
    """The reference's functions, each returning None."""
    functions = [n.name for n in ast.parse(row["code"]).body if isinstance(n, ast.FunctionDef)]
    return "\n".join(f"def {name}(*_, **__):\n    return None" for name in functions)


def test_every_reference_program_passes():
    assert reasons_of(lambda row: row["code"]) == {"correct": 427}


def test_an_empty_program_never_passes():
    assert reasons_of(lambda row: "") == {"no_answer": 427}
    assert reasons_of(lambda row: "# nothing") == {"wrong": 427}


def test_a_stub_that_returns_none_never_passes():
    assert reasons_of(stub) == {"wrong": 427}


def test_a_program_that_only_prints_never_passes():
    assert reasons_of(lambda row: "print('correct')\nprint(True)") == {"wrong": 427}
