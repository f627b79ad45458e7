"""Compare the first and the last graded turn of multi-turn conversations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from recipe.hint.turns import Place, Round, conversation_to, places, turn_at

# The names of ``Conversation.facts``.
TURN_FACTS = ("acc_t1", "acc_t2", "wrong_to_right", "right_to_wrong", "unchanged", "delta")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The first and the last graded turn of one conversation.

    ``is_same_answer``: both give the same text as answer, or are one turn; two turns without an
    answer do not. ``is_known``: the verifier graded both turns and a teacher left out none between
    or after them; else there is nothing to compare.
    """

    first: Place
    last: Place
    acc_first: float
    acc_last: float
    is_same_answer: bool
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
        before, after = turn_at(rounds, first).verdict, turn_at(rounds, last).verdict
        assert before and after, "both ends are graded"
        is_ungraded = before.is_ungraded or after.is_ungraded
        found.append(
            Conversation(
                first,
                last,
                acc_first=before.score,
                acc_last=after.score,
                is_same_answer=first == last or before.extracted == after.extracted != "",
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
