r"""What surrounds a whole answer and means nothing: spaces, bare braces, frames."""

from __future__ import annotations

import re

GAP = r"(?:[\s~]|\\[,;: ]|\\q?quad(?![a-z]))"
FRAME = re.compile(r"^\\(?:boxed|fbox|framebox|underline)(?![A-Za-z])\s*")
MAX_FRAMES = 5  # one in the other
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def is_one_group(text: str) -> bool:
    """Return whether the brace that opens a text closes at its end."""
    depth = 0
    for match in _BRACE.finditer(text if text.startswith("{") else ""):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0:
            return match[0] == "}" and match.end() == len(text)
    return False
