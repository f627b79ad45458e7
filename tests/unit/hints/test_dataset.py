"""Hints from columns of the data, and hint levels cut into increments."""

import asyncio
from dataclasses import replace

import fakes
import numpy as np
import pytest

from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.problems.schema import hint_columns

BLANKS = ["", " ", "\n", None]


def written(hints, *, num_before=0, seed=1, problem_id="p1", max_level=3):
    item = replace(fakes.problem(problem_id=problem_id), hints=hints)
    source = DatasetHints(max_level=max_level, seed=seed)
    return asyncio.run(source.write(item, None, num_before=num_before))


def taken(hints, visits, **how):
    return [written(hints, num_before=n, **how).hints_L for n in range(visits)]


def test_a_column_holds_one_text_or_a_list_of_them_up_to_the_first_that_is_missing():
    row = {"hint_level_1": "a", "hint_level_2": ["b", "c"], "hint_level_3": np.array(["d"], object)}
    assert hint_columns(row) == (("a",), ("b", "c"), ("d",))
    assert hint_columns({"hint_level_1": " ", "hint_level_3": "x"}) == ((),)
    assert hint_columns({"hint_level_1": None, "hint_level_2": ["", "x"]}) == ((), ("", "x"))


def test_of_a_list_each_visit_takes_another_text_until_all_were_used():
    found = taken(tuple(tuple(f"{level}{n}" for n in range(10)) for level in "abc"), 20)
    assert sorted(found[:10]) == [(f"a{n}", f"b{n}", f"c{n}") for n in range(10)]
    assert found[10:] == found[:10]


def test_where_a_problem_begins_follows_from_the_seed_and_its_id():
    hints = (tuple(map(str, range(10))),)

    def first(seed, problem_id):
        return taken(hints, 1, seed=seed, problem_id=problem_id, max_level=1)[0]

    assert first(1, "p1") == first(1, "p1")
    assert len({first(1, f"p{n}") for n in range(30)}) > 5
    assert len({first(seed, "p1") for seed in range(30)}) > 5


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("places", [{(1, 1)}, {(2, 3), (0, 1)}, {(0, 2), (1, 2), (2, 0)}])
def test_a_set_that_lacks_a_text_is_left_out_and_the_others_stay_together(places, blank):
    columns = [[f"{level}{n}" for n in range(4)] for level in "abc"]
    for level, number in places:
        columns[level][number] = blank
    row = {f"hint_level_{level}": texts for level, texts in enumerate(columns, 1)}
    whole = sorted({0, 1, 2, 3} - {number for _, number in places})
    # All in turn: of 3 sets each comes 4 times in 12 visits, of 2 each 6 times.
    sets = [tuple(f"{level}{n}" for level in "abc") for n in whole]
    assert sorted(taken(hint_columns(row), 12)) == sorted(sets * (12 // len(sets)))


def test_one_text_belongs_to_every_set_and_lists_of_other_lengths_lose_blanks_alone():
    row = {"hint_level_1": "a", "hint_level_2": ["b0", "", "b2"], "hint_level_3": ["c0", "c1", ""]}
    assert taken(hint_columns(row), 1) == [("a", "b0", "c0")]
    row["hint_level_3"] = ["c0", " "]
    assert set(taken(hint_columns(row), 4)) <= {("a", "b0", "c0"), ("a", "b2", "c0")}


@pytest.mark.parametrize("hints", [(), (("a",), ("b",)), (("a",), (), ("c",))])
def test_a_row_without_a_text_for_some_level_says_which(hints):
    found = written(hints)
    missing = next(level for level in (1, 2, 3) if level > len(hints) or not hints[level - 1])
    assert (found.status, found.detail) == ("missing_hint", f"hint_level_{missing}")


@pytest.mark.parametrize(
    ("texts", "pieces", "steps"),
    [
        (
            ["one two three four", "five six"],
            2,
            ("one two", "one two three four", "five", "five six"),
        ),
        (["Use $a + b$ here"], 3, ("Use", "Use $a + b$", "Use $a + b$ here")),  # not in a formula
        (["word"], 4, ("word",) * 4),
    ],
)
def test_each_tier_is_shown_in_steps_and_the_last_step_is_all_of_it(texts, pieces, steps):
    source = Increments(DatasetHints(max_level=len(texts), seed=1), pieces)
    item = replace(fakes.problem(), hints=tuple((text,) for text in texts))
    assert asyncio.run(source.write(item, None)).hints_L == steps
    assert asyncio.run(source.write(fakes.problem(), None)).status == "missing_hint"
