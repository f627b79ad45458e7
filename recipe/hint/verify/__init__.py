"""One verifier for training reward and evaluation.

``grade`` and ``quick_grade`` grade one item of any kind; ``VerifierPool`` runs ``grade`` in
processes that can be killed. ``grade_maths`` and ``quick_verdict`` are those of mathematics.
Importing this package imports none of them: the sandbox starts two processes per program,
and each would pay for modules that it does not use.
"""

import importlib

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from recipe.hint.verify.grading import grade, quick_grade
    from recipe.hint.verify.maths.grade import grade_maths, quick_verdict
    from recipe.hint.verify.options import GradeOptions
    from recipe.hint.verify.pool.workers import VerifierPool

__all__ = [
    "GradeOptions",
    "VerifierPool",
    "grade",
    "grade_maths",
    "quick_grade",
    "quick_verdict",
]
_PLACES = {
    "GradeOptions": "options",
    "VerifierPool": "pool.workers",
    "grade": "grading",
    "grade_maths": "maths.grade",
    "quick_grade": "grading",
    "quick_verdict": "maths.grade",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
