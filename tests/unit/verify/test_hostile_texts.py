"""Long hostile texts cost the calling process little, leave nothing behind and change no grade.

Growth is asserted, not seconds: a text four times as long may cost eight times as much.
"""

from __future__ import annotations

import math
import os
import random

import psutil
import pytest
from attacks.hostile import BOMBS, CLASSES, callers, hostile_texts, processor_s
from processes import descendants, peak_mib

from recipe.verify.maths.grade import grade_maths
from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

SEED = 20_261_124
SMALL, LARGE = 2_000, 8_000
PER_PATTERN = 2
MOST_RATIO = 8.0
FLOOR_S = 0.02  # below it the clock's grain and a cache decide
LIMIT_S = 5.0  # beyond it a call counts as hung
NUM_HOSTILE = int(os.environ.get("HINT_HOSTILE_ITEMS", "40"))
MEMORY_MIB = 2048
# Verdicts that any item in between must leave as they are.
KNOWN = (
    (Item(r"\boxed{5}", "5"), "correct"),
    (Item(r"\boxed{\sqrt{8}}", r"2\sqrt{2}"), "correct"),
    (Item(r"\boxed{x^2+2x+1}", r"(x+1)^2"), "correct"),
    (Item(r"\boxed{3\sqrt{3}}", r"2\sqrt{2}"), "wrong"),
    (Item(r"\boxed{\{2,1\}}", r"\{1,2\}"), "correct"),
    (Item("no box", "5"), "no_answer"),
    (Item("(B)", "A", kind="choice"), "no_answer"),
)


def least_s(first, second, tries):
    """The least processor time of two calls, taken in turn."""
    times = [(processor_s(first, LIMIT_S), processor_s(second, LIMIT_S)) for _ in range(tries)]
    return [min(column) for column in zip(*times, strict=True)]


@pytest.mark.slow
def test_what_the_caller_pays_grows_no_faster_than_a_little_over_the_length():
    small = list(hostile_texts(SMALL, PER_PATTERN))
    large = list(hostile_texts(LARGE, PER_PATTERN))
    assert len(small) == len(large) > len(CLASSES)
    steep = []
    for (place, short), (_, long) in zip(small, large, strict=True):
        for name, call in callers(place, long).items():
            cost = processor_s(call, LIMIT_S)
            if cost <= FLOOR_S:
                continue
            # What is steep stays so; what only looked so on a busy machine does not, tried again.
            for tries in (1, 3, 12):
                cheap, cost = least_s(callers(place, short)[name], call, tries)
                if cost <= MOST_RATIO * max(cheap, FLOOR_S / 4):
                    break
            else:
                steep.append((name, place, round(cheap, 4), round(cost, 4), long[:60]))
    assert steep == []


@pytest.mark.parametrize("number", [1, 7, 12])
def test_a_sentence_of_numbers_costs_the_caller_no_more_than_its_length(number):
    text = f"All {number} statements are correct except statement 7"
    assert [
        name for name, call in callers("", text).items() if processor_s(call, 2.0) == math.inf
    ] == []


def hostile_items() -> list[Item]:
    """Answers, responses and golds that aim at the workers too."""
    rng = random.Random(SEED)
    texts = [make(20_000) for make in CLASSES.values()] + [make(300) for make in CLASSES.values()]
    texts += BOMBS
    items = [Item(rf"\boxed{{{text}}}", "8675309.5") for text in texts]
    items += [Item(r"\boxed{8675309.5}", text) for text in texts]
    items += [Item(rf"\boxed{{{text}+x}}", rf"x+{text}1") for text in BOMBS]
    return rng.sample(items, min(NUM_HOSTILE, len(items)))


# A verdict of "error" would leave the answer ungraded, for any wrong answer that is long enough.
CHAINS = ("+".join, "-".join, "".join, r"\cdot ".join, "/".join, "=".join, ",".join, "!".join)


@pytest.mark.parametrize("gold", ["x+1", "-".join(["y"] * 149)])
def test_an_answer_of_many_terms_is_graded(gold):
    for num_terms in (149, 151, 300, 399):
        for chain in CHAINS:
            answer = chain(["x"] * num_terms)
            verdict = grade_maths(rf"\boxed{{{answer}}}", gold)
            assert verdict.reason == "wrong", (chain, num_terms)
    assert grade_maths(rf"\boxed{{{gold}}}", gold).reason == "correct"


@pytest.mark.slow
def test_after_each_hostile_item_the_next_grades_are_those_of_a_fresh_pool():
    before = descendants()
    known, expected = [item for item, _ in KNOWN], [reason for _, reason in KNOWN]
    changed, passed, largest = [], [], 0
    options = GradeOptions(worker_memory_mib=MEMORY_MIB)
    with VerifierPool(num_workers=1, timeout_s=2.0, options=options) as pool:
        for item in hostile_items():
            verdict = pool.grade_many_blocking([item])[0]
            if verdict.reason == "correct":
                passed.append((item.answer[:80], item.response[:80]))
            reasons = [found.reason for found in pool.grade_many_blocking(known)]
            if reasons != expected:
                changed.append((item.answer[:80], item.response[:80], reasons))
            largest = max([largest, *(peak_mib(process) for process in descendants() - before)])
    assert changed == [] and passed == []
    assert 0 < largest <= MEMORY_MIB
    psutil.wait_procs(descendants() - before, timeout=10)
    assert descendants() - before == set()


@pytest.mark.parametrize("empty", [r"\emptyset", "∅", r"\{\}", r"x=\emptyset", r"(1,\emptyset)"])
def test_an_answer_without_members_is_wrong_and_never_ungraded(empty):
    for gold in ("5", r"\pi", "(1,2)", "1,2", "x=5", r"5\text{ cm}", r"\mathbb{R}"):
        assert grade_maths(rf"\boxed{{{empty}}}", gold).reason == "wrong", gold
