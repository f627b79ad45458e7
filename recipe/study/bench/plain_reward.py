"""The reward of plain verl in the GPU check: verl's own knows none of the embedded problems."""

from __future__ import annotations

from typing import Any


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    """Return 1 for a response with the gold answer in a box, and 0 for any other."""
    return float(f"\\boxed{{{ground_truth}}}" in solution_str)
