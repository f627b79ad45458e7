"""One verifier for training reward and evaluation.

``grade(Item(response, answer))`` returns a ``Verdict``. It may run for ever on hostile mathematics;
``VerifierPool`` grades in processes that can be killed. ``rewards`` has the interfaces of trainers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recipe.verify.grading import grade as grade
    from recipe.verify.options import GradeOptions as GradeOptions
    from recipe.verify.pool import VerifierPool as VerifierPool
    from recipe.verify.schema import Item as Item
    from recipe.verify.schema import Verdict as Verdict

_PLACES = {
    "grade": "grading",
    "GradeOptions": "options",
    "Item": "schema",
    "Verdict": "schema",
    "VerifierPool": "pool",
}
__all__ = ["GradeOptions", "Item", "Verdict", "VerifierPool", "grade"]  # noqa: F822


def __getattr__(name: str) -> Any:
    # Late: the sandbox starts two processes per program, and each would pay for the imports.
    if name not in _PLACES:
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
