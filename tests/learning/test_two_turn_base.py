"""The committed two-turn base does what ``BASE.json`` advertises; see test_tiny_base.py."""

from pathlib import Path

import pytest

from recipe.worlds import build, two_turn
from recipe.worlds.build import TWO_TURN

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parents[2] / TWO_TURN.folder


def test_the_base_guesses_its_box_knows_its_work_and_seldom_reads_it():
    hard = build.val_items(TWO_TURN)["hard"][:60]
    rates = two_turn.rates(two_turn.play(build.load_base(FOLDER / "base"), hard))
    # 480 conversations: standard errors at most .014, .010, .023 and .011
    assert 0.05 <= rates["turn_1"] <= 0.17  # one digit in ten
    assert 0.01 <= rates["fix"] <= 0.09  # .04 by design
    assert 0.60 <= rates["same_box"] <= 0.80
    assert rates["work"] >= 0.90  # .985^4 = .94 by design
