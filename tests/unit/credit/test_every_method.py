"""That no method is without a proof, nor without a line on the page."""

from pathlib import Path

import pytest

from recipe.hint.methods import METHODS, get_method

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs/lab/credit.md").read_text(encoding="utf-8")
PROOFS = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_exact_*.py"))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_enumerated_and_its_objective_stands_on_the_page(name):
    assert f"{get_method(name).__name__}(" in PROOFS
    assert f"`{name}`" in PAGE
