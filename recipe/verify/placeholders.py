"""Ground truths that are no answers: what collections write where there is none."""

from __future__ import annotations

import re

_WORDS = (
    "proof|answer|null|nil|nan|tbd|todo|n/?a|n\\.a|unknown|no (?:final )?answer(?: found| given)?"
    "|(?:answer |solution )?not ?(?:found|available|provided|given|applicable)"
    "|see (?:the )?(?:solution|proof|answer|above|below|text|figure|explanation)s?"
    "|(?:proof|answer|solution|image|figure) (?:omitted|missing|needed|required)"
)
_PLACEHOLDER = re.compile(rf"[\[(<]?(?:{_WORDS}|[?_.]+)[\])>]?[.!]?", re.IGNORECASE)
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|boxed)\b|[{}$]")


def is_placeholder(gold: str) -> bool:
    """Return whether a ground truth of mathematics stands for "there is no answer"."""
    return len(gold) < 80 and bool(_PLACEHOLDER.fullmatch(_MARKUP.sub("", gold).strip()))
