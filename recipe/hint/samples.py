"""Choose which prompts of a step to keep for reading: a few at random, and odd ones."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from recipe.hint.errors import ConfigError
from recipe.hint.record import PromptRecord
from recipe.hint.schema import seed_at

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
_MIN_TEXT_BYTES = 200
_RARE_BASIS = 0.1  # a basis that earns in fewer of the step's prompts than this share


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


def unpack_sample(packed: bytes) -> dict[str, Any]:
    """Return what :func:`pack_sample` packed."""
    return json.loads(zlib.decompress(packed))
