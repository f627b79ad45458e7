"""One line of a run's files, read for the page: a visit of a prompt, and a sample with texts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.hint.credit.rows import has_signal

TEXT_CHARS = 8000
_SHORT_CHARS = 400
_MAX_ROUNDS, _MAX_TURNS = 64, 1024
_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class VisitRound:
    """One round of a visit.

    Attributes:
        marks: A character per graded response: ``1`` right, ``0`` wrong, ``?`` neither.
        parents: (round, turn) that each turn goes on from; empty for turns that open.
    """

    prompt: str
    role: str
    level: int
    status: str
    marks: str
    num_ungraded: int
    tokens: int
    seconds: float
    parents: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """What one prompt rollout came to: one line of ``records.jsonl``.

    Attributes:
        rows: (round, turn) of the responses that train.
        rewards: What they train with.
        groups: Names of their groups where there is more than one.
        flags: Marks of the record that are set.
    """

    step: int
    problem_id: str
    rounds: tuple[VisitRound, ...]
    rows: tuple[tuple[int, int], ...]
    rewards: tuple[float | None, ...]
    groups: tuple[str, ...]
    reasons: dict[str, int]
    flags: tuple[str, ...]
    hint_tokens: int
    hint_calls: int

    @property
    def level(self) -> int | None:
        """The hint level of the first response that trains."""
        return self.rounds[self.rows[0][0]].level if self.rows else None

    @property
    def has_signal(self) -> bool:
        """Whether some group has a gradient."""
        return "dropped" not in self.flags and has_signal(self.rewards, self.groups)


def read_visit(row: Mapping[str, Any]) -> Visit:
    """Read a record.

    Raises:
        ValueError: If it is none. So are KeyError, TypeError, AttributeError and IndexError.
    """
    rounds = tuple(map(_round, row["rounds"][:_MAX_ROUNDS]))
    rows = tuple((int(at), int(turn)) for at, turn in row["rows"][:_MAX_TURNS])
    rewards = tuple(map(_number, row["rewards"][:_MAX_TURNS]))
    groups = tuple(str(name)[:80] for name in row.get("groups", ())[:_MAX_TURNS])
    if not rounds or len(rows) != len(rewards) or (groups and len(groups) != len(rows)):
        raise ValueError("rounds, rows, rewards and groups do not fit each other")
    if any(not 0 <= at < len(rounds) for at, _ in rows):
        raise ValueError("a row of a round that is not there")
    flags = [name for name in ("off_schedule", "dropped") if row.get(f"is_{name}")]
    leaked = {each.level for each in rounds} & set(row.get("leaked_levels", ()))
    return Visit(
        step=int(row["step"]),
        problem_id=problem_name(row["problem_id"]),
        rounds=rounds,
        rows=rows,
        rewards=rewards,
        groups=groups,
        reasons={str(name)[:40]: int(count) for name, count in dict(row["reasons"]).items()},
        flags=(
            *flags,
            *(["leaked"] if leaked else []),
            *(["off_policy"] if row.get("on_policy") is False else []),
        ),
        hint_tokens=int(row.get("hint_tokens", 0)),
        hint_calls=int(row.get("hint_calls", 0)),
    )


def stop_reason(visit: Visit, max_level: int | None) -> str:
    """Say from the record alone why sampling went no further.

    Args:
        visit: The prompt rollout.
        max_level: The run's strongest hint level, where known.
    """
    last = visit.rounds[-1]
    ungraded = f"; {last.num_ungraded} not graded" if last.num_ungraded else ""
    if not last.marks and last.status not in ("none", "ok", "cut"):
        return f"no prompt at level {last.level}: {last.status}{ungraded}"
    if not last.marks:
        return f"the last round ({last.role}) is not graded{ungraded}"
    right = last.marks.count("1")
    where = "in the last turn" if last.parents else f"at level {last.level}"
    if right:
        return f"{right} of {len(last.marks)} right {where}{ungraded}"
    if "off_schedule" in visit.flags:
        return f"nothing right, outside the method's schedule{ungraded}"
    if max_level is not None and last.level >= max_level and not last.parents:
        return f"nothing right at level {last.level}, the strongest{ungraded}"
    if len(visit.rounds) == 1:
        return f"nothing right in the only round{ungraded}"
    return f"nothing right {where}{ungraded}"


def read_sample(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a sample, with every text bounded.

    Raises:
        ValueError: If it is none. So are KeyError, TypeError, AttributeError and IndexError.
    """
    return {
        "step": int(row["step"]),
        "why": [str(name)[:40] for name in row["why"]],
        "problem_id": problem_name(row["problem_id"]),
        "source": text(row.get("data_source", ""), _SHORT_CHARS),
        "problem": text(row["problem"]),
        "answer": text(row["answer"]),
        "rounds": [
            {
                "prompt": str(each.get("prompt", "")),
                "level": int(each["level"]),
                "status": str(each["hint_status"]),
                "hint": text(each.get("hint", "")),
                "leaks": bool(each.get("leaks")),
            }
            for each in row["rounds"][:_MAX_ROUNDS]
        ],
        "responses": [_response(each) for each in row["responses"][:_MAX_TURNS]],
        "left_out": int(row.get("left_out", 0)),
    }


def problem_name(value: Any) -> str:
    """Return a problem's id in UTF-8; a long one is cut, and its digest tells it from others."""
    name = text(value)
    if name == str(value) and len(name) <= _SHORT_CHARS:
        return name
    digest = hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:_SHORT_CHARS]} ({digest[:12]})"


def text(value: Any, limit: int = TEXT_CHARS) -> str:
    """Return a text of at most ``limit`` characters that UTF-8 can hold."""
    shown = str(value)
    if len(shown) > limit:
        shown = shown[: limit // 4] + " [...] " + shown[-3 * limit // 4 :]
    return shown.encode("utf-8", "replace").decode("utf-8")


def _round(row: Mapping[str, Any]) -> VisitRound:
    accuracies: Sequence[Any] = row["accuracies"][:_MAX_TURNS]
    return VisitRound(
        prompt=str(row["prompt"])[:40],
        role=str(row.get("role", "solver"))[:40],
        level=int(row["level"]),
        status=str(row["hint_status"])[:40],
        marks="".join({1: "1", 0: "0"}.get(each, _UNKNOWN) for each in accuracies),
        num_ungraded=int(row.get("num_ungraded", 0)),
        tokens=int(row["tokens"]),
        seconds=_number(row.get("seconds", 0)) or 0.0,
        parents=tuple((int(at), int(turn)) for at, turn in row.get("parents", ())[:_MAX_TURNS]),
    )


def _response(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        "round": int(row["round"]) if "round" in row else None,
        "level": int(row["level"]),
        "turns": [int(each) for each in row["rows"][:_MAX_TURNS]],
        "trains": bool(row["trains"]),
        "score": _number(row.get("score", 0)),
        "reward": _number(row["reward"]),
        "reason": str(row["reason"])[:40],
        "basis": str(row["basis"])[:40],
        "extracted": text(row["extracted"], _SHORT_CHARS),
        "ignored": text(row["ignored"], _SHORT_CHARS),
        "why": [str(name)[:40] for name in row["why"]],
    }
    return kept | ({"text": text(row["response"])} if "response" in row else {})


def _number(value: Any) -> float | None:
    """Return a finite number; a user's own reward may be none."""
    number = float(value)
    return number if math.isfinite(number) else None
