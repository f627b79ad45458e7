"""Compare the first and the last graded turn of multi-turn conversations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from recipe.hint.schema import Response
from recipe.hint.turns import Place, Round, conversation_to, places, turn_at

# The names of ``Conversation.facts``.
TURN_FACTS = (
    *("acc_t1", "acc_t2", "wrong_to_right", "right_to_wrong", "unchanged"),
    *("delta", "overlap"),
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The first and the last graded turn of one conversation.

    ``is_same_answer``: both give the same text as answer, or are one turn; two turns without an
    answer do not. ``overlap`` is in [0, 1]. ``is_known``: the verifier graded both turns and a
    teacher left out none between or after them; else there is nothing to compare.
    """

    first: Place
    last: Place
    acc_first: float
    acc_last: float
    is_same_answer: bool
    overlap: float
    is_known: bool = True

    @property
    def facts(self) -> dict[str, float]:
        """Return the comparison as numbers, as metrics and evaluations show it; NaN if unknown.

        ``acc_t2`` is that of the last graded turn, the third one where there is feedback.
        """
        was_right, is_right = self.acc_first > 0, self.acc_last > 0
        found = {
            "acc_t1": self.acc_first,
            "acc_t2": self.acc_last,
            "delta": self.acc_last - self.acc_first,
            "wrong_to_right": float(is_right and not was_right),
            "right_to_wrong": float(was_right and not is_right),
            "unchanged": float(self.is_same_answer),
            "overlap": self.overlap,
        }
        return found if self.is_known else dict.fromkeys(found, math.nan)


def conversations(rounds: Sequence[Round]) -> tuple[Conversation, ...]:
    """Return every conversation, by its last graded turn.

    One that ends with its first turn, because no prompt for the next one fits, changed nothing.
    Where the verifier failed the accuracy is 0, as everywhere, and the comparison is unknown.
    """
    without_end = unanswered(rounds)
    graded = {
        place: conversation_to(rounds, place)
        for index, each in enumerate(rounds)
        for place, turn in zip(places(rounds, index), each.turns, strict=True)
        if turn.verdict
    }
    continued = {place for steps in graded.values() for place in steps[:-1]}
    found = []
    for last, steps in graded.items():
        if last in continued:
            continue
        first = next(each for each in steps if each in graded)
        one, two = turn_at(rounds, first), turn_at(rounds, last)
        assert one.verdict and two.verdict, "both ends are graded"
        before, after = one.verdict, two.verdict
        is_ungraded = before.is_ungraded or after.is_ungraded
        found.append(
            Conversation(
                first,
                last,
                acc_first=before.score,
                acc_last=after.score,
                is_same_answer=first == last or before.extracted == after.extracted != "",
                overlap=overlap(one.response, two.response),
                is_known=last not in without_end and not is_ungraded,
            )
        )
    return tuple(found)


def unanswered(rounds: Sequence[Round]) -> set[Place]:
    """Return the turns that a teacher was to answer and did not, and the turns before them."""
    found: set[Place] = set()
    for each in rounds:
        answered = {*each.without_prompt, *(turn.parent for turn in each.turns)}
        for parent in each.request.parents or ():
            if parent not in answered:
                found.update(conversation_to(rounds, parent))
    return found


def by_first(found: Sequence[Conversation]) -> list[list[Conversation]]:
    """Return the conversations of each first turn; means over it count every first turn alike."""
    groups: dict[Place, list[Conversation]] = {}
    for each in found:
        groups.setdefault(each.first, []).append(each)
    return list(groups.values())


def mean_facts(found: Sequence[Conversation]) -> list[dict[str, float]]:
    """Return the facts of each first turn, means over the known conversations that continue it."""
    known = [each for each in found if each.is_known]
    groups = [[each.facts for each in group] for group in by_first(known)]
    return [{name: fmean(facts[name] for facts in group) for name in group[0]} for group in groups]


def overlap(one: Response, two: Response) -> float:
    """Return the share of characters that two responses begin and end alike.

    For a beginning and an end of p and s common characters it is 2·(p + s) / (first + second). What
    lies between them bounds the edit distance from above, without its quadratic time. Two empty
    responses are alike: 1.0.
    """
    a, b = one.text, two.text
    if a == b:
        return 1.0
    start = _common_start(a, b)
    end = _common_start(a[start:][::-1], b[start:][::-1])
    return 2 * (start + end) / (len(a) + len(b))


def _common_start(a: str, b: str) -> int:
    unequal = (place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(unequal, min(len(a), len(b)))
