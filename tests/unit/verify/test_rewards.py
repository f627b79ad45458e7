"""Other trainers call the verifier through their own interfaces."""

from __future__ import annotations

import subprocess
import sys

from recipe.verify.rewards import compute_score, reward_function

HASHES = [{"role": "user", "content": "Write the number after ####."}]


def test_verl_calls_it_with_a_row():
    assert compute_score("own", r"so \boxed{\frac{1}{2}}", "0.5", {"question": "Half?"}) == 1.0
    assert compute_score("own", r"so \boxed{3}", 2) == 0.0
    assert compute_score("own", "#### 2", 2, {"prompt": HASHES}) == 1.0
    assert compute_score("own", "#### 2", 2, None) == 0.0


def test_trl_calls_it_with_columns():
    turns = [[{"role": "assistant", "content": "#### 2"}], "#### 3"]
    assert reward_function([HASHES] * 2, turns, answer=["2", "2"], level=[1, 1]) == [1.0, 0.0]


def test_the_verifier_needs_no_training_stack():
    code = (
        "import sys; from recipe.verify.grading import grade; import recipe.verify.rewards;"
        "print([m for m in ('verl', 'torch', 'ray', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
