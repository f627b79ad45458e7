"""The text of a program, into which pages and models may have put invisible characters."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return a text with plain spaces for all others, and without characters of no width."""
    if text.isascii():
        return text
    return "".join(
        char if char.isascii() or char.isprintable() else " " if char.isspace() else ""
        for char in text
    )
