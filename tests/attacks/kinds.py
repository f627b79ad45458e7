"""The register of edits: one function per kind, from a gold answer to another text or nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

from attacks.shapes import Gold

Edit = Callable[[random.Random, Gold], str | None]
CHANGING: dict[str, Edit] = {}
PRESERVING: dict[str, Edit] = {}


def changes(name: str) -> Callable[[Edit], Edit]:
    """Register an edit after which the answer is wrong; ``None`` where that is not sure."""

    def register(edit: Edit) -> Edit:
        assert name not in CHANGING, name
        CHANGING[name] = edit
        return edit

    return register


def keeps(name: str) -> Callable[[Edit], Edit]:
    """Register an edit after which the answer is as right as before."""

    def register(edit: Edit) -> Edit:
        assert name not in PRESERVING, name
        PRESERVING[name] = edit
        return edit

    return register


FONTS = ("text", "mathrm", "mbox", "operatorname", "textbf", "mathbf", "textit", "mathit", "textrm")


def wrapped(rng: random.Random, text: str, *fonts: str) -> str:
    return rf"\{rng.choice(fonts or FONTS)}{{{text}}}"


def whole(rng: random.Random, gold: Gold, least: int, beside: tuple[int, ...] = ()) -> int | None:
    """The gold when it is a whole number of at least this size and none of those named."""
    value = gold.whole
    return None if value is None or abs(value) < least or value in beside else value
