"""What a model made of one problem, for a terminal: each round's hint, answers and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recipe.hint.report.samples import printable

_INDENT = "    "
_SHOWN = 2  # different answers of a round


def asked_lines(asked: dict[str, Any], *, shows_all: bool = False) -> list[str]:
    """Return the problem, then every round.

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
    for done in asked["rounds"]:
        lines += ["", *_round(done, shows_all)]
    return [printable(line) for line in lines]


def _round(done: dict[str, Any], shows_all: bool) -> Iterator[str]:
    turns = done["turns"]
    graded = [turn for turn in turns if turn["score"] is not None]
    head = f"level {done['level']}" if done["level"] else "no hint"
    if done["prompt"] not in ("bare", "hinted"):
        head = f"{done['role']}, {done['prompt'].replace('_', ' ')}"
    right = sum(turn["score"] > 0 for turn in graded)
    told = f"{right} of {len(graded)} right" if graded else f"{len(turns)} responses"
    yield f"{head}: {told if turns else done['hint_status'].replace('_', ' ')}"
    if done["hint"]:
        cut = ", cut" if done["hint_status"] == "cut" else ""
        yield f"  hint{cut}{', holds the answer' if done['leaks'] else ''}"
        yield from _text(done["hint"])
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, turn in enumerate(turns):
        key = (str(number), "") if shows_all else (turn["reason"], turn["extracted"])
        groups.setdefault(key, []).append(turn)
    in_order = sorted(groups.values(), key=lambda group: (not group[0]["score"], -len(group)))
    shown = in_order if shows_all else in_order[:_SHOWN]
    for group in shown:
        turn = group[0]
        count = f"{len(group)} x " if len(group) > 1 else ""
        end = ", cut off" if turn["is_truncated"] else ""
        found = f" {turn['extracted']}" if turn["extracted"] else ""
        yield f"  {count}{turn['reason'].replace('_', ' ')}{found} ({turn['tokens']} tokens{end})"
        yield from _text(turn["response"])
    if rest := in_order[len(shown) :]:
        others = (
            f"{len(group)} x {group[0]['reason'].replace('_', ' ')} {group[0]['extracted']}".strip()
            for group in rest
        )
        yield f"  and {', '.join(others)}"


def _text(text: str) -> Iterator[str]:
    lines = text.strip().splitlines() or ["(empty)"]
    return (f"{_INDENT}{line}" for line in lines)
