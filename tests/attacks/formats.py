"""Responses that state an answer in several formats, of which the rule reads one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

PROMPTS = {
    "How many are left?": (),
    r"How many are left? Put the number within \boxed{}.": ("boxed",),
    'How many are left? Write the number after "####".': ("hashes",),
    "Reply as <think>...</think><answer>...</answer>. How many are left?": ("tags",),
    "How many are left? The last line has the form Answer: $Answer.": ("line",),
    "Write <answer>...</answer>, or end with #### and the number.": ("hashes", "tags"),
    'Put it after "Answer:" or after "####".': ("hashes", "line"),
}
_FORMS = {
    "boxed": ("\n\\boxed{{{}}}\n", " It is \\boxed{{{}}}. "),
    "hashes": ("\n#### {}\n", " so #### {}\n"),
    "tags": ("\n<answer>{}</answer>\n", "<answer>\n${}$\n</answer>\n"),
    "line": ("\nAnswer: {}\n", "\n**Answer:** {}\n", "\nFinal answer: ${}$\n"),
}
_IDLE = (
    "\n##### {}\n", "\n### {}\n", "The answer is {}. ", "**{}**\n", "\n${}$\n", "[{}]\n",
    "<result>{}</result>\n", "= {}\n", "\n## Step {}\n",
)  # fmt: skip
_OPEN = {"boxed": r"\boxed{{{}", "tags": "<answer>{}"}


class Case(NamedTuple):
    """A response; ``is_right`` says whether the rule reads the gold answer in it."""

    prompt: str
    response: str
    answer: str
    is_truncated: bool
    is_right: bool


def generate(seed: int) -> Iterator[Case]:
    """Yield cases for ever: half are wrong, with the gold answer in places that do not count."""
    rng = random.Random(seed)
    while True:
        prompt, asked = rng.choice([*PROMPTS.items()])
        gold, other = (str(n) for n in rng.sample(range(2, 999), 2))
        is_right = rng.random() < 0.5
        said, beside = (gold, other) if is_right else (other, gold)
        last = rng.choice([*asked, "boxed"])
        unread = [name for name in _FORMS if name not in (*asked, "boxed")]
        ways = ["said"] if is_right else ["said", "open", "nothing", "thought", "cut", "either"]
        way = rng.choice(ways)
        # Read formats may come before the last one, but a box counts before all others.
        before = [last, *asked] if last == "boxed" else asked
        if way in ("nothing", "thought") or (way == "open" and last not in _OPEN):
            before, last = (), ""
        text = "".join(_piece(rng, [*before, *unread], beside) for _ in range(rng.randrange(4)))
        text += _last(rng, way, last, said, gold, other)
        is_cut = way == "cut" or (is_right and rng.random() < 0.1)
        if way != "thought" and not is_cut:
            text += "".join(_piece(rng, unread, beside) for _ in range(rng.randrange(3)))
        if rng.random() < 0.5:
            thought = _piece(rng, [*_FORMS], beside)
            text = f"{rng.choice(['<think>', ''])}{thought}</think>{text}"
        yield Case(prompt, text, gold, is_cut, is_right)


def _piece(rng: random.Random, formats: list[str], value: str) -> str:
    forms = [form for name in formats for form in _FORMS[name]]
    return rng.choice([*forms, *_IDLE]).format(value)


def _last(rng: random.Random, way: str, name: str, said: str, gold: str, other: str) -> str:
    """Return what decides."""
    if not name:
        return f"<think>\n\\boxed{{{gold}}}" if way == "thought" else ""
    form = rng.choice(_FORMS[name])
    if way == "open":
        return _OPEN[name].format(gold)
    if way == "cut":  # the number may go on
        return (
            form.format(gold).rstrip("}>/ewnsr\n$*.")
            if name != "boxed"
            else _OPEN[name].format(gold)
        )
    return form.format(f"{gold} or {other}" if way == "either" else said)
