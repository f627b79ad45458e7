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
from recipe.hint.tiny import task
from recipe.hint.tiny.two_turn import corpus as two_turn_corpus
from recipe.hint.tiny.two_turn import slips
from recipe.hint.tiny.two_turn import task as two_turn_task


def one_turn_pieces() -> list[str]:
    """Return the pieces of problems, solutions, hints and hint requests."""
    found = [*_prompt_pieces(), *_response_pieces(), *_problem_pieces()]
    return list(dict.fromkeys(piece for piece in found if piece))


def two_turn_pieces() -> list[str]:
    """Return the pieces of problems, responses, instructions and feedback."""
    labels = [
        form for label in two_turn_task.STEP_LABELS for form in (f"\n{label}: ", f"\n{label}=")
    ]
    guide = re.split(r"\{problem\}|\{attempt\}", GUIDE_USER)
    refine = REFINE.split("{feedback}")
    feedback = [slips.NO_SLIP, *map(slips.feedback_on, range(two_turn_task.NUM_STEPS))]
    found = [
        two_turn_corpus.REVISE,
        two_turn_corpus.COMPARE,
        task.PROBLEM_OPENING,
        f"\n{two_turn_task.PROBLEM_CLOSING}",
        *labels,
        *two_turn_task.TABLES,
        task.BOX_OPENING,
        *(f"{label}{sign}" for label in two_turn_task.STEP_LABELS[:1] for sign in (": ", "=")),
        *(f" {digit}" for digit in range(10)),
        f"\n{slips.SLIP_CLOSING}",
        f"\n{task.BOX_OPENING}",
        GUIDE_SYSTEM,
        two_turn_corpus.CHECK_SYSTEM,
        *guide,
        *refine,
        *feedback,
        NO_FEEDBACK,
    ]
    return [piece for piece in found if piece]


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
    operations = [op.name for family in task.FAMILIES.values() for op in family.operations]
    labels = [form for label in task.LABELS for form in (f"\n{label}: ", f"{label}=")]
    inputs = [f" {digit}, " for digit in range(10)]
    fixed = [task.PROBLEM_OPENING, f"\n{task.PROBLEM_CLOSING}", f"\n{task.BOX_OPENING}", ", "]
    return [*operations, *labels, f"{task.LABELS[0]}: ", *inputs, *fixed]
