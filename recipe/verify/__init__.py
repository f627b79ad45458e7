"""One verifier for training reward and evaluation.

``grade(Item(response, answer))`` returns a ``Verdict``. It may run for ever on hostile mathematics;
``VerifierPool`` grades in processes that can be killed. ``rewards`` has the interfaces of trainers.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "grade": "grading",
    "GradeOptions": "options",
    "Item": "schema",
    "Verdict": "schema",
    "VerifierPool": "pool",
}


def __getattr__(name: str) -> Any:
    # Late: the sandbox starts two processes per program, and each would pay for the imports.
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
