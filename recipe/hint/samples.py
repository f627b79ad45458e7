"""Keep a few prompts of a step for reading: some drawn at random, the others flagged ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from recipe.hint.record import PromptRecord
from recipe.hint.schema import seed_at
from recipe.hint.turns import Place, Round
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict

_RANDOM_SHARE = 4  # one in this many places is drawn at random
_MIN_TEXT_BYTES = 200
_SHORT_BYTES = 300  # of an extracted or an ignored text
_MAX_BYTES = 32_768  # of the long texts of one prompt
_NO_VERDICT = Verdict(0.0, "no_answer")  # of a turn that is not graded
_MARK = " [... {} characters left out ...] "


@dataclass(frozen=True)
class SampleSettings:
    """How much of a step is written down, and whether loggers get it; 0 prompts: no samples."""

    prompts_per_step: Annotated[int, Field(ge=0)] = 8
    text_bytes: Annotated[int, Field(ge=_MIN_TEXT_BYTES)] = 2000
    to_loggers: bool = False


NO_SAMPLES = SampleSettings(prompts_per_step=0)


def flags_of(record: PromptRecord) -> list[str]:
    """Return why a prompt may be worth reading.

    ``ignored``: a verdict left a part of the answer out. ``ungraded``: a grade timed out or failed.
    ``leaked``: a level was tried whose hint, as written, holds the final answer.
    """
    is_leaked = bool(set(record.levels) & set(record.leaked_levels))
    flags = {"ignored": record.num_ignored > 0, "leaked": is_leaked}
    flags["ungraded"] = any(each.num_ungraded for each in record.rounds)
    return [name for name, is_so in flags.items() if is_so]


def choose_samples(
    records: Sequence[PromptRecord],
    packed: Mapping[str, bytes],
    *,
    settings: SampleSettings,
    seed: int,
    step: int,
) -> list[dict[str, Any]]:
    """Return the rows of ``samples.jsonl`` for one step.

    One place in four is drawn at random: an unbiased picture of the step. The others go to flagged
    prompts, and stay empty without any. All draws are seeded by (seed, step, problem id).
    ``packed`` has, by uid, what :func:`pack_sample` made; prompts without one are not chosen.
    """
    order = sorted(
        (record for record in records if packed.get(record.uid)),
        key=lambda each: (seed_at(seed, step, each.problem_id), each.problem_id),
    )
    num_random = math.ceil(settings.prompts_per_step / _RANDOM_SHARE)
    flagged = [record for record in order[num_random:] if flags_of(record)]
    rows = []
    for place, record in enumerate([*order[:num_random], *flagged][: settings.prompts_per_step]):
        sample = json.loads(packed[record.uid])
        for each in sample["rounds"]:
            each["leaks"] = each["level"] in record.leaked_levels
        why = ["random"] * (place < min(num_random, len(order))) + flags_of(record)
        head = {"step": step, "why": why, "problem_id": record.problem_id, "uid": record.uid}
        rows.append(head | {"accepted_level": record.first_row_level} | sample)
    return rows


def pack_sample(
    problem: Problem, rounds: Sequence[Round], rewards: Mapping[Place, float], text_bytes: int
) -> bytes:
    """Return one prompt's sample as JSON.

    Responses of one round with the same verdict share an entry, which shows one of them. Many texts
    are shown shorter. ``rewards``: of the turns that train.
    """
    entries = _entries(rounds, rewards)
    limit = max(min(text_bytes, _MAX_BYTES // (2 + len(rounds) + len(entries))), _MIN_TEXT_BYTES)
    for entry in entries:
        turn = rounds[entry["round"]].turns[entry["rows"][0]]
        entry["response"] = excerpt(turn.response.text, limit)
    sample = {
        "kind": problem.kind,
        "data_source": excerpt(problem.data_source, _SHORT_BYTES),
        "problem": excerpt(problem.text, limit),
        "answer": excerpt(problem.answer, limit),
        "rounds": [
            {
                "prompt": each.request.prompt.kind,
                "level": each.level,
                "hint_status": each.hint_status,
                "hint": excerpt(each.hint, limit),
            }
            for each in rounds
        ],
        "responses": entries,
    }
    return json.dumps(sample).encode()


def excerpt(text: str, max_bytes: int) -> str:
    """Return a text of at most ``max_bytes`` bytes of UTF-8, its middle left out if need be.

    The end gets three quarters: the answer is there. Half of a surrogate pair becomes ``?``.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return raw.decode()
    room = max_bytes - len(_MARK) - 8
    head = raw[: room // 4].decode("utf-8", "ignore")
    tail = raw[room // 4 - room :].decode("utf-8", "ignore")
    return head + _MARK.format(len(text) - len(head) - len(tail)) + tail


def _entries(rounds: Sequence[Round], rewards: Mapping[Place, float]) -> list[dict[str, Any]]:
    rows: dict[tuple, list[int]] = {}
    for number, each in enumerate(rounds):
        for row, turn in enumerate(each.turns):
            place = Place(number, row)
            verdict = turn.verdict or _NO_VERDICT
            reward = rewards.get(place, verdict.train_reward)
            rows.setdefault((number, verdict, reward, place in rewards), []).append(row)
    entries = [
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
            "why": ["ignored"] * bool(verdict.ignored) + ["ungraded"] * verdict.is_ungraded,
        }
        for (number, verdict, reward, trains), places in rows.items()
    ]
    return sorted(entries, key=lambda each: (not each["why"], not each["trains"]))


def _finite(value: float) -> float | str:
    # A user's own function may return what JSON does not know.
    return value if math.isfinite(value) else str(value)
