"""Choose which prompts of a step to keep for reading: a few at random, and odd ones.

A sample has excerpts of a prompt's responses, bounded per text and per prompt.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from recipe.hint.record import PromptRecord, odd_shape
from recipe.hint.schema import seed_at
from recipe.hint.turns import Place, Round
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.verify.schema import Opinion, Verdict

# Why a prompt is kept.
REASONS = (
    "random",  # drawn at random
    "ignored",  # a verdict left a part of the answer out
    "disagrees",  # the second judge disagrees
    "new_shape",  # answers of a form that was rarely rewarded before
    "ungraded",  # a grade timed out or failed
    "rare_basis",  # few prompts of the step are rewarded on this basis
    "leaked",  # a level was tried whose hint, as written, holds the final answer
)
_RANDOM_SHARE = 4  # one in this many places is drawn at random
# A shape is new when it earns in at least so many prompts of a step, and in this many times the
# share that it had before.
_MIN_PROMPTS, _GROWTH = 3, 4.0
_MAX_SHAPES = 4096
# Stands for all shapes that no earlier step had: a trick may be written differently each time. No
# shape has a blank.
_UNSEEN = "never seen"
_RARE_BASIS = 0.1  # a basis that earns in fewer of the step's prompts than this share
_MIN_TEXT_BYTES = 200
MAX_SAMPLE_BYTES = 32_768
_SHORT_BYTES = 300  # of an extracted or an ignored text
_MAX_RESPONSES = 8
_NO_VERDICT = Verdict(0.0, "no_answer")  # of a turn that is not graded
_MARK = " [... {} characters left out ...] "


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


NO_SAMPLES = SampleSettings(prompts_per_step=0, second_judge_share=0.0)


class SampleChooser:
    """Chooses a step's prompts; remembers how often each odd shape has earned.

    One place in four is drawn at random: an unbiased picture of the step. The others go to odd
    prompts, to each kind of oddness in turn, the rarest first, and stay empty without such prompts.
    All draws are seeded by (seed, step, problem id).
    """

    def __init__(self, settings: SampleSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._counts: Counter[str] = Counter()
        self._prompts = 0
        self._new_share = 0.0

    def update(
        self, step: int, records: Sequence[PromptRecord], packed: Mapping[str, bytes]
    ) -> list[dict[str, Any]]:
        """Fold a step in and return the rows of ``samples.jsonl``.

        Args:
            step: The training step.
            records: All of the step.
            packed: By uid, what ``pack_sample`` made; prompts without one are not chosen.
        """
        new = self._new_shapes(records)
        self._new_share = sum(bool(new & set(each.shapes)) for each in records) / max(
            len(records), 1
        )
        # All at once: a shape that is new in one prompt is still unseen in the rest of the step.
        self._counts.update([name for record in records for name in self._shapes_of(record)])
        self._prompts += len(records)
        if len(self._counts) > _MAX_SHAPES:
            ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
            self._counts = Counter(dict(ranked[: _MAX_SHAPES // 2]))
        kept = [record for record in records if packed.get(record.uid)]
        return [
            _row(record, step, why, packed[record.uid], new)
            for record, why in self._choose(step, kept, new)
        ]

    def metrics(self) -> dict[str, float]:
        """Return names relative to ``verify/``: the share of prompts with a new shape."""
        return {"new_shape": self._new_share}

    def state_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values."""
        return {"prompts": self._prompts, "counts": dict(self._counts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the content by a saved one."""
        self._prompts = int(state["prompts"])
        self._counts = Counter(state["counts"])

    def _new_shapes(self, records: Sequence[PromptRecord]) -> frozenset[str]:
        """Return shapes that earn in far more prompts of this step than of earlier ones."""
        if not self._prompts:
            return frozenset()
        counts = Counter(name for record in records for name in self._shapes_of(record))
        new = frozenset(
            name
            for name, count in counts.items()
            if count >= _MIN_PROMPTS
            and count / len(records) >= _GROWTH * (self._counts[name] + 0.5) / (self._prompts + 1)
        )
        return new | {name for name in counts if _UNSEEN in new and not self._counts[name]}

    def _shapes_of(self, record: PromptRecord) -> set[str]:
        unseen = any(not self._counts[name] for name in record.shapes)
        return {*record.shapes, *([_UNSEEN] if unseen else [])}

    def _choose(
        self, step: int, records: Sequence[PromptRecord], new: frozenset[str]
    ) -> list[tuple[PromptRecord, list[str]]]:
        places = self._settings.prompts_per_step
        order = sorted(
            records, key=lambda each: (seed_at(self._seed, step, each.problem_id), each.problem_id)
        )
        odd = _oddities(order, new)
        num_random = min(math.ceil(places / _RANDOM_SHARE), len(order))
        chosen = list(range(num_random))
        # One of each oddness after the other; the rarest begins.
        queues = sorted(odd.items(), key=lambda item: (len(item[1]), item[0]))
        turns = (place for turn in zip_longest(*(rows for _, rows in queues)) for place in turn)
        chosen += dict.fromkeys(
            place for place in turns if place is not None and place >= num_random
        )
        return [
            (
                order[place],
                ["random"] * (place < num_random)
                + sorted(name for name, rows in odd.items() if place in rows),
            )
            for place in chosen[:places]
        ]


def _oddities(records: Sequence[PromptRecord], new: frozenset[str]) -> dict[str, list[int]]:
    """Return places of the prompts by what is odd about them."""
    bases = Counter(name for record in records for name in record.earning_bases)
    rare = {name for name, count in bases.items() if count < _RARE_BASIS * len(records)}
    odd: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        found = {
            "ignored": record.num_ignored > 0,
            "disagrees": record.num_disagreed > 0,
            "new_shape": bool(new & set(record.shapes)),
            "ungraded": any(each.num_ungraded for each in record.rounds),
            "rare_basis": bool(rare & set(record.earning_bases)),
            "leaked": bool(set(record.levels) & set(record.leaked_levels)),
        }
        for name, is_so in found.items():
            if is_so:
                odd.setdefault(name, []).append(place)
    return odd


def _row(
    record: PromptRecord, step: int, why: list[str], packed: bytes, new: frozenset[str]
) -> dict[str, Any]:
    sample = unpack_sample(packed)
    for each in sample["rounds"]:
        each["leaks"] = each["level"] in record.leaked_levels
    for response in sample["responses"]:
        if response["shape"] in new:
            response["why"].append("new_shape")
    head = {"step": step, "why": why, "problem_id": record.problem_id, "uid": record.uid}
    return head | {"accepted_level": record.first_row_level} | sample


# -- one prompt's sample: packed by a worker, unpacked by the driver ----------------------------


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
    text_bytes: int,
) -> bytes:
    """Return one prompt's sample: JSON of at most ``MAX_SAMPLE_BYTES``, compressed.

    Responses of one round with the same verdict share an entry, which shows one of them. What does
    not fit is counted in ``left_out``.

    Args:
        problem: The problem.
        rounds: All that was sampled, whether it trains or not.
        rewards: Those of the turns that train.
        opinions: Those of the second judge.
        text_bytes: Length of one text at most.
    """
    room = _Room(MAX_SAMPLE_BYTES - 1000)
    sample: dict[str, Any] = {
        "kind": problem.kind,
        "data_source": room.text(problem.data_source, _SHORT_BYTES),
        "problem": room.text(problem.text, text_bytes),
        "answer": room.text(problem.answer, text_bytes),
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
            sample["rounds"].append(done | {"hint": room.text(each.hint, text_bytes)})
    for entry in shown[:_MAX_RESPONSES]:
        turn = rounds[entry["round"]].turns[entry["rows"][0]]
        entry["response"] = room.text(turn.response.text, text_bytes)
    sample["responses"] = shown
    sample["left_out"] = len(entries) - len(shown) + len(rounds) - len(sample["rounds"])
    return zlib.compress(json.dumps(sample).encode("ascii"), 1)


def unpack_sample(packed: bytes) -> dict[str, Any]:
    """Return what :func:`pack_sample` packed."""
    return json.loads(zlib.decompress(packed))


class _Room:
    """The bytes that are left for a sample."""

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
            reward = rewards.get(place, verdict.train_reward)
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
