"""The pure parts stay free of the training stack: they import in milliseconds."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "verl", "ray", "vllm", "transformers", "sympy", "pyarrow", "matplotlib")


@pytest.mark.parametrize(
    "module",
    ["methods", "rollout", "metrics", "reward_tracker", "hints.parsing", "verify", "command"],
)
def test_a_pure_module_imports_nothing_heavy(module):
    code = (
        f"import sys, recipe.hint.{module}; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
