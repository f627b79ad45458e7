"""The text of a program, where pages and models have put characters into it that nobody sees."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return a text with plain spaces for all others, and without characters of no width."""
    if text.isascii():
        return text
    return "".join(
        char if char.isascii() or char.isprintable() else " " if char.isspace() else ""
        for char in text
    )
