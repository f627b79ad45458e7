"""The pure parts stay free of the training stack: they import in milliseconds."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "verl", "ray", "vllm", "transformers", "sympy", "pyarrow")


@pytest.mark.parametrize(
    "module",
    [
        "hint.methods",
        "hint.rollout",
        "hint.metrics",
        "hint.reward_tracker",
        "hint.hints.self_generated",
        "verify",
        "hint.command",
    ],
)
def test_a_pure_module_imports_nothing_heavy(module):
    code = (
        f"import sys, recipe.{module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_teacher_imports_the_http_library_with_its_first_request():
    code = "import sys, recipe.hint.hints.teacher; print('openai' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
