"""Precision and recall of the leak guard on hints labelled by hand, and what may not change.

The files were written with an earlier guard of five times the size, which had 0.99 and 0.98, 1.00
and 0.94, 1.00 and 1.00 on them. One author wrote the hints and both guards, so other writers' hints
may do worse. A hint is labelled a leak where it gives the final answer's value as the value asked
for or as what its last step comes to; the same number in another role is none.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from recipe.hint.hints.leak import REDACTED, find_leaks, graded_equal, redact
from recipe.problems.schema import Problem
from recipe.verify.maths.grade import grade_maths

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
# What was measured; the guard must not get worse.
FLOORS = {
    "leaks": (107 / 116, 107 / 118),
    "leaks_held_out": (27 / 30, 27 / 31),
    "leaks_writings": (48 / 53, 48 / 56),
}


async def judge_all(items):
    return [grade_maths(item.response, item.answer) for item in items]


EQUAL = graded_equal(judge_all)


def labelled(name: str):
    """(problem, hint, label) of each hint."""
    for row in json.loads((GOLDEN / f"{name}.json").read_text("utf-8")):
        kind = "choice" if "(A)" in row["problem"] else "maths"
        turns = ({"role": "user", "content": row["problem"]},)
        item = Problem("id", turns, row["problem"], "", row["answer"], kind=kind)
        yield from ((item, label["hint"], label) for label in row["hints"])


def found_by_guard(name: str) -> list[tuple]:
    async def look():
        return [
            (item, hint, label, (await find_leaks([hint], item, EQUAL))[0])
            for item, hint, label in labelled(name)
        ]

    return asyncio.run(look())


@pytest.fixture(scope="module", params=sorted(FLOORS))
def judged(request):
    return request.param, found_by_guard(request.param)


def contains_text(hint: str, answer: str) -> bool:
    """The simple guard to compare with: the answer's own text stands somewhere."""
    return bool(re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w])", hint))


def precision_recall(counts: Counter) -> tuple[float, float]:
    hits = counts[True, True]
    return hits / (hits + counts[False, True]), hits / (hits + counts[True, False])


def row(title: str, counts: Counter) -> str:
    precision, recall = precision_recall(counts)
    leaks = counts[True, True] + counts[True, False]
    return f"{title:30} {sum(counts.values()):6} {leaks:6} {precision:10.3f} {recall:7.3f}"


def test_precision_and_recall_do_not_fall(judged):
    name, results = judged
    guard = Counter((bool(label["leak"]), bool(leaks)) for _, _, label, leaks in results)
    simple = Counter(
        (bool(label["leak"]), contains_text(hint, item.answer)) for item, hint, label, _ in results
    )
    lines = [f"{name:30} {'hints':>6} {'leaks':>6} {'precision':>10} {'recall':>7}"]
    lines.append(row("the guard", guard))
    small = [each for each in results if each[0].answer in map(str, range(13))]
    counts = Counter((bool(label["leak"]), bool(leaks)) for _, _, label, leaks in small)
    lines.append(row("  answers 0 to 12", counts))
    lines.append(row("the answer's text", simple))
    sys.stdout.write("\n".join(["", *lines, ""]))
    precision, recall = precision_recall(guard)
    least_precision, least_recall = FLOORS[name]
    assert precision >= least_precision
    assert recall >= least_recall


def test_there_are_enough_hints_and_every_label_has_a_reason():
    labels = [label for name in FLOORS for _, _, label in labelled(name)]
    assert len(labels) >= 400
    assert sum(bool(label["leak"]) for label in labels) >= 140
    assert all(label["why"] and label["level"] in (1, 2, 3) for label in labels)
    assert all(label["leak"] in label["hint"] for label in labels)


def test_a_redacted_hint_holds_no_leak_and_has_lost_nothing_else(judged):
    _, results = judged
    for item, hint, _, leaks in results:
        redacted = redact(hint, leaks)
        if not leaks:
            assert redacted == hint
            continue
        assert asyncio.run(find_leaks([redacted], item, EQUAL)) == [()]
        pattern = ".+?".join(map(re.escape, redacted.split(REDACTED)))
        assert re.fullmatch(pattern, hint, re.DOTALL)


PROGRAM = Problem("id", (), "Add.", "", "assert add(1, 2) == 3", kind="program")
CODE = "```python\ndef add(a, b):\n    return a + b\n```"


@pytest.mark.parametrize(
    ("hint", "span"), [(f"Try {CODE}.", CODE), ("Try ```\npass\n```.", ""), ("Use +.", "")]
)
def test_a_hint_for_a_program_leaks_where_a_block_of_it_passes(hint, span):
    async def passes(problem, candidates):
        return ["return a + b" in each for each in candidates]

    [leaks] = asyncio.run(find_leaks([hint], PROGRAM, passes))
    assert [hint[leak.start : leak.end] for leak in leaks] == ([span] if span else [])
