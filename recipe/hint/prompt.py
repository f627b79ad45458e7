"""Prompt texts of the methods, and how a hint enters a conversation.

Our own wording, with the same parts as in Liao et al. 2026, arXiv:2602.03143 (appendix B);
``hint.prompts=FILE.yaml`` loads other texts. Only the short strings marked "protocol" are copied
verbatim, because existing data and checkpoints use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.schema import USABLE_HINTS, HintStatus
from recipe.problems.schema import ANSWER_SYSTEM_PROMPT
from recipe.run.errors import ConfigError
from recipe.run.typed import read_typed

# protocol
HINT_USER_PROMPT_TEMPLATE = "Question:\n{problem}\nSolution:\n{solution}"
# protocol
HINT_LEAD = "Here is a hint to help you:"

HINT_SYSTEM_PROMPT = """\
You are a tutor who helps a student with a hard question by means of hints.
You see the question and a reference solution; the student sees only the question.

Your task: write three hints of growing strength, so that the student can find the solution alone.

Levels:
- level_1: only the idea. Name the concept or the fact that matters and nothing else.
- level_2: the direction. Say which way to go and give some of the steps in between.
- level_3: strong support. Lead through most of the work and leave the last part to the student.

Rules:
- Never state the final answer, at any level.
- Each level contains what the level before it says and adds to it.
- Make the student think; do not dictate a text to copy.
- Use words and methods that fit the level of the question.

Reply with one fenced json object that has exactly the keys level_1, level_2 and level_3, each a string:
```json
{
  "level_1": "...",
  "level_2": "...",
  "level_3": "..."
}
```"""  # noqa: E501

GUIDE_SYSTEM = """\
You are a tutor. You read a student's attempt at a problem and tell the student what to look at \
again. Find the first step that is wrong and say in one or two sentences what to do about it. If \
every step is right, say so. Leave the work to the student: no solution, no final answer."""
GUIDE_USER = "Problem:\n{problem}\n\nThe student's attempt:\n{attempt}\n\nYour feedback:"
REFINE = """\
A tutor read your solution and says:
{feedback}

Think it over, and write out the whole solution once more with its final answer in the form that \
was asked for."""

# What a template must hold.
_FIELDS = (
    *(("hint_user", "problem"), ("hint_user", "solution"), ("refine", "feedback")),
    *(("guide_user", "problem"), ("guide_user", "attempt")),
)

Message = dict[str, str]
Messages = tuple[Message, ...]
# How a hint enters the conversation (``with_hint``).
Style = Literal["paper", "release", "prefill"]


@dataclass(frozen=True, slots=True)
class Texts:
    """The replaceable texts; keys of a ``hint.prompts`` file are these names."""

    hint_system: str = HINT_SYSTEM_PROMPT
    hint_user: str = HINT_USER_PROMPT_TEMPLATE
    hint_lead: str = HINT_LEAD
    # It asks for nothing that the first prompt does not: the problem's own instructions hold.
    revise: str = (
        "Read your solution again: it may hold a mistake, and it may be right. Correct what is "
        "wrong, and write out the whole solution once more with its final answer in the form that "
        "was asked for."
    )
    guide_system: str = GUIDE_SYSTEM
    guide_user: str = GUIDE_USER
    refine: str = REFINE


def load_texts(mapping: object, source: str) -> Texts:
    """Return the texts, with those of a user's file replaced; ``source`` names it in errors.

    Raises:
        ConfigError: On an unknown key, a non-string, or a template without a field.
    """
    if not isinstance(mapping, dict):
        raise ConfigError(f"{source}: expected a mapping of texts, got {mapping!r}")
    texts = read_typed(Texts, mapping, source)
    for key, name in _FIELDS:
        if f"{{{name}}}" not in getattr(texts, key):
            raise ConfigError(f"{source}: {key} must contain {{{name}}}")
    return texts


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation, or the status that says why there is none.

    ``hint`` is the text that it shows, or would show if it fitted. ``prompt_ids_T`` are its tokens
    if it was rendered to check that it fits.
    """

    messages: Messages = ()
    status: HintStatus = "none"
    hint: str = ""
    prompt_ids_T: Sequence[int] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether there is something to render."""
        return self.status in USABLE_HINTS

    @property
    def prefill(self) -> str:
        """The beginning of the response, if the prompt already contains one."""
        last = self.messages[-1]
        return last["content"] if last["role"] == "assistant" else ""


def with_hint(
    messages: Sequence[Message], hint: str, texts: Texts, style: Style = "paper"
) -> list[Message]:
    """Return the data set's conversation, which ends with a user turn, with ``hint`` in it.

    ``paper`` appends to the last user turn and leaves every other token as it was, so the
    un-hinted prompt's text stays a prefix up to the end of that turn. ``release`` is the form of
    the authors' release: its own system prompt and a ``Question:`` line. ``prefill`` makes the hint
    the beginning of the response, which the policy continues.
    """
    if style == "prefill":
        return [*messages, {"role": "assistant", "content": hint}]
    question = messages[-1]["content"]
    if style == "release":
        body = f"Question:\n{question}\n\n{texts.hint_lead}\n{hint}"
        return [
            {"role": "system", "content": ANSWER_SYSTEM_PROMPT},
            {"role": "user", "content": body},
        ]
    last = {**messages[-1], "content": f"{question}\n{texts.hint_lead}\n{hint}"}
    return [*messages[:-1], last]


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Return the conversation with its system text at the head of the first user turn.

    For models whose chat template refuses a system turn.
    """
    system = [turn["content"] for turn in messages if turn["role"] == "system"]
    rest = [turn for turn in messages if turn["role"] != "system"]
    if not system or not rest:
        return list(messages)
    first = {**rest[0], "content": "\n\n".join([*system, rest[0]["content"]])}
    return [first, *rest[1:]]


def fill(template: str, **fields: str) -> str:
    """Return a template with its ``{name}`` replaced by the fields.

    In one pass, not by ``str.format``: problems and templates may hold braces of their own.
    """
    return re.sub(rf"\{{({'|'.join(fields)})\}}", lambda match: fields[match[1]], template)
