"""Notation with more than one reading: generated right answers, and near misses of them."""

from __future__ import annotations

import itertools
import random

from recipe.hint.verify import grade_maths

BRACKETS = (("(", ")"), ("[", "]"), (r"\begin{pmatrix}", r"\end{pmatrix}"))


def accepts(gold, candidate, problem=""):
    return grade_maths(rf"\boxed{{{candidate}}}", gold, problem=problem).reason == "correct"


def bracketed(pair, members):
    return pair[0] + (r"\\ " if "begin" in pair[0] else ",").join(map(str, members)) + pair[1]


def test_a_sign_pair_inside_a_bracket_makes_two_brackets_and_no_longer_one():
    rng = random.Random(6)
    for pair, size in itertools.product(BRACKETS, (2, 3, 4)):
        values = rng.sample(range(1, 40), size)
        place = rng.randrange(size)
        value = values[place]
        with_sign = [[*values[:place], s * value, *values[place + 1 :]] for s in (1, -1)]
        answer = bracketed(pair, [*values[:place], rf"\pm {value}", *values[place + 1 :]])
        assert accepts(",".join(bracketed(pair, each) for each in with_sign), answer)
        for order in ((value, -value), (-value, value)):
            spliced = bracketed(pair, [*values[:place], *order, *values[place + 1 :]])
            assert not accepts(spliced, answer), answer
            assert not accepts(spliced, answer.strip("()[]")), answer  # nor without brackets
        assert not any(accepts(bracketed(pair, each), answer) for each in with_sign)
