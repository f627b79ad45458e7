r"""What surrounds a whole answer and means nothing: spaces, ``$``, bare braces, frames."""

from __future__ import annotations

import re

GAP = r"(?:[\s~]|\\[,;: ]|\\q?quad(?![a-z]))"
FRAME = re.compile(r"^\\(?:boxed|fbox|framebox|underline)(?![A-Za-z])\s*")
MAX_FRAMES = 5  # one in the other
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_OUTER = re.compile(rf"\A{GAP}{{1,40}}|(?<!\\)(?:{GAP}{{1,40}}\\?|\\)\Z")
_MATHS = re.compile(r"\\[()\[\]]|\\.|\$\$?|[{}]", re.DOTALL)


def unwrapped(text: str) -> str:
    r"""Return an answer without what surrounds it, and without ``$`` around its parts.

    ``$k\pi$, $k\in\mathbb{Z}$`` and ``{k\pi, k\in\mathbb{Z}}`` are ``k\pi, k\in\mathbb{Z}``.
    """
    for _ in range(2 * MAX_FRAMES):
        inner = _without_dollars(_OUTER.sub("", text))
        framed = FRAME.sub("", inner, count=1)
        inner = framed[1:-1] if is_one_group(framed) else inner
        if inner == text:
            break
        text = inner
    return text


def _without_dollars(text: str) -> str:
    """Drop the signs that begin and end formulas outside of all braces, if they come in pairs."""
    kept: list[str] = []
    depth = start = 0
    for match in _MATHS.finditer(text):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and (match[0][0] == "$" or match[0][1:] in ("(", ")", "[", "]")):
            kept.append(text[start : match.start()])
            start = match.end()
    return text if len(kept) % 2 or not kept else " ".join([*kept, text[start:]]).strip()


def is_one_group(text: str) -> bool:
    """Return whether the brace that opens a text closes at its end."""
    depth = 0
    for match in _BRACE.finditer(text if text.startswith("{") else ""):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0:
            return match[0] == "}" and match.end() == len(text)
    return False
