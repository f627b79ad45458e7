"""Compare the first and the last graded turn of multi-turn conversations."""

from __future__ import annotations

import math
from bisect import bisect_left
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

    Attributes:
        first: Place of the first graded turn.
        last: Place of the last one.
        acc_first: Its accuracy, 1 for right and 0 for wrong.
        acc_last: That of the last one.
        is_same_answer: Whether both give the same text as answer, or are one turn; two turns
            without an answer do not.
        overlap: Share of characters that both responses begin and end alike, in [0, 1].
        is_known: Whether the verifier graded both turns and a teacher left out none that was to
            come between or after them; else there is nothing to compare.
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
    """Return every conversation that was sampled from its first turn on, by its last graded turn.

    One that ends with its first turn, because no prompt for the next one fits, changed nothing.
    Where the verifier failed the accuracy is 0, as everywhere, and the comparison is unknown.
    """
    without_end = unanswered(rounds)
    sampled = {index for index, each in enumerate(rounds) if not each.request.given}
    graded = {
        place: conversation_to(rounds, place)
        for index, each in enumerate(rounds)
        for place, turn in zip(places(rounds, index), each.turns, strict=True)
        if turn.verdict
    }
    continued = {place for steps in graded.values() for place in steps[:-1]}
    return tuple(
        _compared(
            rounds,
            next(each for each in steps if each in graded),
            last,
            is_answered=last not in without_end,
        )
        for last, steps in graded.items()
        if last not in continued and steps[0].round in sampled
    )


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


def _compared(
    rounds: Sequence[Round], first: Place, last: Place, *, is_answered: bool
) -> Conversation:
    (one, before), (two, after) = (
        (turn.response, turn.verdict)
        for turn in (turn_at(rounds, place) for place in (first, last))
    )
    assert before and after, "both ends are graded"
    is_same = first == last or before.extracted == after.extracted != ""
    is_known = is_answered and not (before.is_ungraded or after.is_ungraded)
    scores = before.score, after.score
    return Conversation(first, last, *scores, is_same, overlap(one, two), is_known)


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
    """Return how many characters two texts begin alike: where they differ, found by halves."""
    most, reach = min(len(a), len(b)), 64
    while reach < most and a[:reach] == b[:reach]:
        reach *= 2
    lengths = range(1, min(reach, most) + 1)
    return bisect_left(lengths, True, key=lambda length: a[:length] != b[:length])
