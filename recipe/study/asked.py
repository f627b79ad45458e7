"""What a model made of one problem, for a terminal: each round's hint, answers and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recipe.study.tables import printable

_INDENT = "    "
_SHOWN = 2  # different answers of a round, or courses of a conversation
# (role, turn) from the first turn to the last one.
_Talk = list[tuple[str, dict[str, Any]]]


def asked_lines(asked: dict[str, Any], *, shows_all: bool = False) -> list[str]:
    """Return the problem, then every round; of several turns whole conversations.

    Args:
        asked: What ``evaluation.asking.ask`` gave.
        shows_all: Every response. Else one of each of two verdicts: a right one first, then the
            most frequent.
    """
    lines = [f"problem {asked['id']}, gold answer {asked['answer']}", *_text(asked["problem"])]
    if asked["solution"].strip():
        lines += ["solution", *_text(asked["solution"])]
    if asked["hint_calls"]:
        calls = f"{asked['hint_calls']} response{'s' * (asked['hint_calls'] > 1)}"
        lines.append(f"hints: asked for in {calls}, {asked['hint_tokens']} tokens")
    rounds = asked["rounds"]
    if any(turn["parent"] for done in rounds for turn in done["turns"]):
        lines += ["", *map(_head, rounds), *_talks(rounds, shows_all)]
    else:
        for done in rounds:
            lines += ["", *_round(done, shows_all)]
    return [printable(line) for line in lines]


def _head(done: dict[str, Any]) -> str:
    turns = done["turns"]
    graded = [turn for turn in turns if turn["score"] is not None]
    head = f"level {done['level']}" if done["level"] else "no hint"
    if done["prompt"] not in ("bare", "hinted"):
        head = f"{done['role']}, {done['prompt'].replace('_', ' ')}"
    right = sum(turn["score"] > 0 for turn in graded)
    told = f"{right} of {len(graded)} right" if graded else f"{len(turns)} responses"
    return f"{head}: {told if turns else done['hint_status'].replace('_', ' ')}"


def _round(done: dict[str, Any], shows_all: bool) -> Iterator[str]:
    yield _head(done)
    if done["hint"]:
        cut = ", cut" if done["hint_status"] == "cut" else ""
        yield f"  hint{cut}{', holds the answer' if done['leaks'] else ''}"
        yield from _text(done["hint"])
    shown, rest = _groups([[(done["role"], turn)] for turn in done["turns"]], shows_all)
    for group in shown:
        [(_, turn)] = group[0]
        yield f"  {_times(group)}{_verdict(turn)} ({_size(turn)})"
        yield from _text(turn["response"])
    if rest:
        others = (f"{len(group)} x {_verdict(group[0][0][1])}" for group in rest)
        yield f"  and {', '.join(others)}"


def _talks(rounds: list[dict[str, Any]], shows_all: bool) -> Iterator[str]:
    """Show conversations from their first turn to their last one."""
    turns = {
        (number, place): (done["role"], turn)
        for number, done in enumerate(rounds)
        for place, turn in enumerate(done["turns"])
    }
    continued = {tuple(turn["parent"]) for _, turn in turns.values() if turn["parent"]}
    talks = []
    for last in turns.keys() - continued:
        talk, at = [], last
        while at:
            talk.insert(0, turns[at])
            at = tuple(turns[at][1]["parent"] or ())
        talks.append((last, talk))
    shown, rest = _groups([talk for _, talk in sorted(talks)], shows_all)
    for group in shown:
        yield from ("", f"{_times(group)}{_course(group[0])}")
        for role, turn in group[0]:
            yield f"  {role} ({_size(turn)})"
            yield from _text(turn["response"])
    if rest:
        yield from ("", "and " + ", ".join(f"{len(group)} x {_course(group[0])}" for group in rest))


def _groups(talks: list[_Talk], shows_all: bool) -> tuple[list[list[_Talk]], list[list[_Talk]]]:
    """Return groups with the same verdicts to show, and the rest; right ones first."""
    groups: dict[object, list[_Talk]] = {}
    for number, talk in enumerate(talks):
        key = tuple((turn["reason"], turn["extracted"]) for _, turn in talk)
        groups.setdefault(number if shows_all else key, []).append(talk)
    in_order = sorted(groups.values(), key=lambda each: (not each[0][-1][1]["score"], -len(each)))
    count = len(in_order) if shows_all else _SHOWN
    return in_order[:count], in_order[count:]


def _course(talk: _Talk) -> str:
    """Say who spoke, and what each graded turn came to."""
    return ", then ".join(
        role if turn["score"] is None else f"{role} {_verdict(turn)}" for role, turn in talk
    )


def _verdict(turn: dict[str, Any]) -> str:
    return f"{turn['reason'].replace('_', ' ')} {turn['extracted']}".strip()


def _size(turn: dict[str, Any]) -> str:
    return f"{turn['tokens']} tokens{', cut off' if turn['is_truncated'] else ''}"


def _times(group: list[_Talk]) -> str:
    return f"{len(group)} x " if len(group) > 1 else ""


def _text(text: str) -> Iterator[str]:
    lines = text.strip().splitlines() or ["(empty)"]
    return (f"{_INDENT}{line}" for line in lines)
