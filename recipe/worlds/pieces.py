"""Every fixed text of a world that is one token, in vocabulary order.

Prompts are cut from those of the recipe, so that a change of wording there changes the tokenizer
here; the base must then be built again.
"""

from __future__ import annotations

import re

from recipe.hint.prompt import (
    ANSWER_SYSTEM_PROMPT,
    GUIDE_SYSTEM,
    GUIDE_USER,
    HINT_LEAD,
    HINT_SYSTEM_PROMPT,
    HINT_USER_PROMPT_TEMPLATE,
    NO_FEEDBACK,
    REFINE,
)
from recipe.worlds import task
from recipe.worlds.three_turn import corpus as three_turn_corpus
from recipe.worlds.two_turn import corpus as two_turn_corpus
from recipe.worlds.two_turn import task as two_turn_task


def one_turn_pieces() -> list[str]:
    """Return the pieces of problems, solutions, hints and hint requests."""
    found = [*_prompt_pieces(), *_response_pieces(), *_problem_pieces()]
    return list(dict.fromkeys(piece for piece in found if piece))


def two_turn_pieces() -> list[str]:
    """Return the pieces of problems, responses and instructions."""
    return [
        two_turn_corpus.REVISE,
        two_turn_corpus.COMPARE,
        task.PROBLEM_OPENING,
        f"\n{two_turn_task.PROBLEM_CLOSING}",
        *_label_pieces(),
        *two_turn_task.TABLES,
        task.BOX_OPENING,
    ]


def three_turn_pieces() -> list[str]:
    """Return the pieces of the two-turn world, of requests for feedback, and of feedback."""
    request = [GUIDE_SYSTEM, *re.split(r"\{problem\}|\{attempt\}", GUIDE_USER)]
    feedback = [*three_turn_corpus.FEEDBACK, NO_FEEDBACK]
    found = [*two_turn_pieces(), *request, *REFINE.split("{feedback}"), *feedback]
    return [piece for piece in found if piece]


def _label_pieces() -> list[str]:
    labels = two_turn_task.STEP_LABELS
    return [form for label in labels for form in (f"\n{label}: ", f"\n{label}=")]


def _prompt_pieces() -> list[str]:
    """Return the project's prompts, cut at blank lines and at the fields of the template."""
    paragraphs = re.findall(r".+?(?:\n\n|\Z)", HINT_SYSTEM_PROMPT, re.DOTALL)
    frame = re.split(r"\{problem\}|\{solution\}", HINT_USER_PROMPT_TEMPLATE)
    return [ANSWER_SYSTEM_PROMPT, f"\n{HINT_LEAD}\n", *paragraphs, *frame]


def _response_pieces() -> list[str]:
    """Return what stands around the hints of a response, cut from a real one."""
    marks = [f"<{level}>" for level in range(task.NUM_LEVELS)]
    return re.split("|".join(marks), task.hint_response(marks))


def _problem_pieces() -> list[str]:
    operations = [op.name for family in (task.EASY, task.HARD) for op in family.operations]
    labels = [form for label in task.LABELS for form in (f"\n{label}: ", f"{label}=")]
    inputs = [f" {digit}, " for digit in range(10)]
    fixed = [task.PROBLEM_OPENING, f"\n{task.PROBLEM_CLOSING}", f"\n{task.BOX_OPENING}", ", "]
    return [*operations, *labels, f"{task.LABELS[0]}: ", *inputs, *fixed]
