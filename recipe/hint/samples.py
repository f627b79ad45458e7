"""What training keeps of a prompt for people to read: excerpts of a bounded size.

Every text has a limit and so has every prompt, whatever the policy writes. Which prompts of a step
are kept is decided in ``sample_choice``.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.hint.errors import ConfigError
from recipe.hint.schema import Opinion, Problem, Verdict
from recipe.hint.turns import Place, Round

MAX_SAMPLE_BYTES = 32_768
_MIN_TEXT_BYTES = 200
_SHORT_BYTES = 300  # of an extracted or an ignored text
_MAX_RESPONSES = 8
_NO_VERDICT = Verdict(0.0, "no_answer")  # of a turn that is not graded
_MARK = " [... {} characters left out ...] "
_SHAPES_PER_PROMPT, _SHAPE_CHARS, _READ_CHARS = 8, 60, 500
_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[^\W\d_]+(?:\s+[^\W\d_]+)*|\d+|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class SampleSettings:
    """How much of a step is written down, and how often the second judge is asked.

    Raises:
        ConfigError: If a value is out of range.
    """

    prompts_per_step: int = 8
    text_bytes: int = 2000
    second_judge_share: float = 0.05

    def __post_init__(self) -> None:
        if self.prompts_per_step < 0:
            raise ConfigError(
                f"hint.samples.prompts_per_step={self.prompts_per_step} must be a number of "
                f"prompts, or 0 (no samples)"
            )
        if self.text_bytes < _MIN_TEXT_BYTES:
            raise ConfigError(
                f"hint.samples.text_bytes={self.text_bytes} must be at least {_MIN_TEXT_BYTES}"
            )
        if not 0 <= self.second_judge_share <= 1:
            raise ConfigError(
                f"hint.samples.second_judge_share={self.second_judge_share} must be in [0, 1]"
            )


def shape(text: str) -> str:
    r"""Return the form of an answer: numbers are 0, words a, commands and signs as they are.

    ``5\text{,000}`` becomes ``0\text{,0}``. Long answers share the form of their beginning.
    """
    parts = []
    for token in _TOKEN.findall(text[:_READ_CHARS]):
        if token[0].isalpha():
            parts.append("a")
        elif token.isdecimal():
            parts.append("0")
        elif not token.isspace():
            parts.append(token if token.isprintable() else "?")
    return "".join(parts)[:_SHAPE_CHARS]


def odd_shape(problem: Problem, verdict: Verdict) -> str:
    """Return the shape of an answer that earns and is not written as its gold answer is.

    Empty for all others: the golds of a data set have many shapes, so only the difference tells.
    A program and its tests have no shape in common.
    """
    if verdict.score <= 0 or problem.kind == "program":
        return ""
    found = shape(verdict.extracted)
    return "" if found == shape(problem.answer.strip("$ \n")) else found


def verdict_counts(
    problem: Problem, rounds: Sequence[Round], opinions: Mapping[Place, Opinion]
) -> dict[str, Any]:
    """Return the fields of a record that say how all responses of a prompt were graded."""
    verdicts = [verdict for each in rounds for verdict in each.verdicts]
    shapes = sorted({odd_shape(problem, verdict) for verdict in verdicts} - {""})
    given = Counter(opinions.values())
    return {
        "bases": dict(Counter(verdict.basis for verdict in verdicts)),
        "earning_bases": tuple(sorted({each.basis for each in verdicts if each.score > 0})),
        "num_ignored": sum(bool(verdict.ignored) for verdict in verdicts),
        "num_second": given["agrees"] + given["disagrees"],
        "num_disagreed": given["disagrees"],
        "shapes": tuple(shapes[:_SHAPES_PER_PROMPT]),
    }


def excerpt(text: str, max_bytes: int) -> str:
    """Return a text of at most ``max_bytes`` bytes of UTF-8, its middle left out if need be.

    The end gets three quarters: the answer is there. Half of a surrogate pair becomes ``?``.
    """
    if len(text) <= max_bytes:
        raw = text.encode("utf-8", "replace")
        if len(raw) <= max_bytes:
            return raw.decode("utf-8")
    room = max_bytes - len(_MARK) - 8
    begin, end = room // 4, room - room // 4
    head = text[:begin].encode("utf-8", "replace")[:begin].decode("utf-8", "ignore")
    tail = text[-end:].encode("utf-8", "replace")[-end:].decode("utf-8", "ignore")
    return head + _MARK.format(len(text) - len(head) - len(tail)) + tail


def pack_sample(
    problem: Problem,
    rounds: Sequence[Round],
    rewards: Mapping[Place, float],
    opinions: Mapping[Place, Opinion],
    settings: SampleSettings,
) -> bytes:
    """Return one prompt's sample, compressed: most of them are never looked into.

    As JSON it has at most ``MAX_SAMPLE_BYTES``. Responses of one round with the same verdict share
    an entry, which shows one of them. What finds no room is counted in ``left_out``.

    Args:
        problem: The problem.
        rounds: All that was sampled, whether it trains or not.
        rewards: What the turns that train train with.
        opinions: Those of the second judge.
        settings: Limits.
    """
    room = _Room(MAX_SAMPLE_BYTES - 1000)
    limit = settings.text_bytes
    sample: dict[str, Any] = {
        "kind": problem.kind,
        "data_source": room.text(problem.data_source, _SHORT_BYTES),
        "problem": room.text(problem.text, limit),
        "answer": room.text(problem.answer, limit),
        "rounds": [],
        "responses": [],
    }
    entries = _entries(problem, rounds, rewards, opinions)
    shown = [entry for entry in entries if room.take(entry)]
    for each in rounds:
        done = {
            "prompt": each.request.prompt.kind,
            "level": each.level,
            "hint_status": each.hint_status,
        }
        if room.take(done):
            sample["rounds"].append(done | {"hint": room.text(each.hint, limit)})
    for entry in shown[:_MAX_RESPONSES]:
        turn = rounds[entry["round"]].turns[entry["rows"][0]]
        entry["response"] = room.text(turn.response.text, limit)
    sample["responses"] = shown
    sample["left_out"] = len(entries) - len(shown) + len(rounds) - len(sample["rounds"])
    return zlib.compress(json.dumps(sample).encode("ascii"), 1)


def unpack_sample(packed: bytes) -> dict[str, Any]:
    """Return what :func:`pack_sample` packed."""
    return json.loads(zlib.decompress(packed))


class _Room:
    """What is left of a sample's bytes."""

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def take(self, value: Any) -> bool:
        """Return whether a value fits; it is then counted."""
        cost = len(json.dumps(value)) + 20  # its name and the commas around
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def text(self, text: str, max_bytes: int) -> str:
        """Return the excerpt, or nothing when it does not fit any more."""
        short = excerpt(text, max_bytes)
        return short if self.take(short) else ""


def _entries(
    problem: Problem,
    rounds: Sequence[Round],
    rewards: Mapping[Place, float],
    opinions: Mapping[Place, Opinion],
) -> list[dict[str, Any]]:
    """Return the different verdicts: odd ones first, then those that train."""
    rows: dict[tuple, list[int]] = {}
    for number, each in enumerate(rounds):
        for row, turn in enumerate(each.turns):
            place = Place(number, row)
            verdict = turn.verdict or _NO_VERDICT
            reward = rewards.get(place, verdict.trained)
            second = opinions.get(place, "not_asked")
            rows.setdefault((number, verdict, reward, place in rewards, second), []).append(row)
    entries = []
    for (number, verdict, reward, trains, second), places in rows.items():
        odd = odd_shape(problem, verdict)
        found = {
            "ignored": bool(verdict.ignored),
            "disagrees": second == "disagrees",
            "ungraded": verdict.is_ungraded,
        }
        entries.append(
            {
                "round": number,
                "level": rounds[number].level,
                "rows": places,
                "trains": trains,
                "score": _finite(verdict.score),
                "reward": _finite(reward),
                "reason": "not_graded" if verdict is _NO_VERDICT else verdict.reason,
                "basis": verdict.basis,
                "extracted": excerpt(verdict.extracted, _SHORT_BYTES),
                "ignored": excerpt(verdict.ignored, _SHORT_BYTES),
                "second": second,
                "shape": odd,
                "why": [name for name, is_so in found.items() if is_so],
            }
        )
    return sorted(
        entries, key=lambda each: (not each["why"], not each["shape"], not each["trains"])
    )


def _finite(value: float) -> float | str:
    """Return a number that JSON knows; a user's own function may return others."""
    return value if math.isfinite(value) else str(value)
