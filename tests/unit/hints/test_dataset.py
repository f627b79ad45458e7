"""Hints from columns of the data, and hint levels cut into increments."""

import asyncio
from dataclasses import replace

import fakes
import numpy as np
import pytest

from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.problems.schema import hint_columns

ROW = {"hint_level_1": "a", "hint_level_2": ["b", "c"], "hint_level_3": np.array(["d"], object)}


def hint_levels(hints, *, num_before=0, seed=1, problem_id="p1", max_level=3):
    item = replace(fakes.problem(problem_id=problem_id), hints=hints)
    source = DatasetHints(max_level=max_level, seed=seed)
    return asyncio.run(source.write(item, None, num_before=num_before))


def test_a_column_holds_one_text_or_a_list_of_them():
    assert hint_columns(ROW) == (("a",), ("b", "c"), ("d",))


def test_columns_end_at_the_first_that_is_missing_and_a_blank_keeps_its_place():
    assert hint_columns({"hint_level_1": " ", "hint_level_3": "x"}) == ((),)
    assert hint_columns({"problem": "x"}) == ()
    assert hint_columns({"hint_level_1": None, "hint_level_2": ["", "x"]}) == ((), ("", "x"))


def test_one_text_per_level_is_the_ladder_at_every_visit():
    hints = (("a",), ("b",), ("c",))
    for num_before in range(3):
        assert hint_levels(hints, num_before=num_before).hint_levels.hints_L == ("a", "b", "c")


def test_of_a_list_each_visit_takes_another_text_until_all_were_used():
    hints = tuple(tuple(f"{level}{n}" for n in range(10)) for level in "abc")
    taken = [
        hint_levels(hints, num_before=num_before).hint_levels.hints_L for num_before in range(20)
    ]
    assert sorted(taken[:10]) == [(f"a{n}", f"b{n}", f"c{n}") for n in range(10)]
    assert taken[10:] == taken[:10]


def test_where_a_problem_begins_follows_from_the_seed_and_its_id():
    hints = (tuple(map(str, range(10))),)

    def first(seed, problem_id):
        found = hint_levels(hints, seed=seed, problem_id=problem_id, max_level=1)
        return found.hint_levels.hints_L

    assert first(1, "p1") == first(1, "p1")
    assert len({first(1, f"p{n}") for n in range(30)}) > 5
    assert len({first(seed, "p1") for seed in range(30)}) > 5


BLANKS = ["", " ", "\n", None]


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("places", [{(1, 1)}, {(0, 0)}, {(2, 3), (0, 1)}, {(0, 2), (1, 2), (2, 0)}])
def test_a_set_that_lacks_a_text_is_left_out_and_the_others_stay_together(places, blank):
    columns = [[f"{level}{n}" for n in range(4)] for level in "abc"]
    for level, number in places:
        columns[level][number] = blank
    row = {f"hint_level_{level}": texts for level, texts in enumerate(columns, 1)}
    taken = [hint_levels(hint_columns(row), num_before=n).hint_levels.hints_L for n in range(12)]
    whole = sorted({0, 1, 2, 3} - {number for _, number in places})
    # All in turn: of 3 sets each comes 4 times in 12 visits, of 2 each 6 times.
    sets = [tuple(f"{level}{n}" for level in "abc") for n in whole]
    assert sorted(taken) == sorted(sets * (12 // len(sets)))


def test_a_blank_in_a_column_that_is_not_used_leaves_no_set_out():
    row = {"hint_level_1": ["a0", "a1"], "hint_level_2": ["b0", " "]}
    taken = [
        hint_levels(hint_columns(row), max_level=1, num_before=n).hint_levels.hints_L
        for n in range(2)
    ]
    assert sorted(taken) == [("a0",), ("a1",)]


def test_one_text_belongs_to_every_set_and_lists_of_other_lengths_lose_blanks_alone():
    row = {"hint_level_1": "a", "hint_level_2": ["b0", "", "b2"], "hint_level_3": ["c0", "c1", ""]}
    assert hint_levels(hint_columns(row)).hint_levels.hints_L == ("a", "b0", "c0")
    row["hint_level_3"] = ["c0", " "]
    for num_before in range(4):  # b0 or b2; c0
        found = hint_levels(hint_columns(row), num_before=num_before).hint_levels.hints_L
        assert found in {("a", "b0", "c0"), ("a", "b2", "c0")}


@pytest.mark.parametrize("blank", BLANKS)
def test_without_a_whole_set_there_is_no_hint(blank):
    row = {"hint_level_1": ["a0", blank], "hint_level_2": [blank, "b1"]}
    assert hint_levels(hint_columns(row), max_level=2).status == "missing_hint"
    assert hint_levels(hint_columns(row), max_level=1).hint_levels.hints_L == ("a0",)


@pytest.mark.parametrize("hints", [(), (("a",), ("b",)), (("a",), (), ("c",))])
def test_a_row_without_a_text_for_some_level_says_which(hints):
    found = hint_levels(hints)
    assert found.status == "missing_hint"
    missing = next(level for level in (1, 2, 3) if level > len(hints) or not hints[level - 1])
    assert found.detail == f"hint_level_{missing}"


def increments(texts, pieces):
    source = Increments(DatasetHints(max_level=len(texts), seed=1), pieces)
    item = replace(fakes.problem(), hints=tuple((text,) for text in texts))
    return asyncio.run(source.write(item, None))


def test_each_tier_is_shown_in_steps_and_the_last_step_is_all_of_it():
    found = increments(["one two three four", "five six"], 2)
    assert found.hint_levels.hints_L == ("one two", "one two three four", "five", "five six")


def test_an_increment_never_ends_inside_a_formula():
    # Five words, of which $a + b$ is one place to end: ends after "Use", "$a + b$" and "here".
    found = increments(["Use $a + b$ here"], 3)
    assert found.hint_levels.hints_L == ("Use", "Use $a + b$", "Use $a + b$ here")


def test_a_short_tier_repeats_its_words_rather_than_giving_an_empty_hint():
    assert increments(["word"], 4).hint_levels.hints_L == ("word",) * 4


def test_a_failure_of_the_source_stays_one():
    found = asyncio.run(
        Increments(DatasetHints(max_level=3, seed=1), 4).write(fakes.problem(), None)
    )
    assert found.status == "missing_hint"
    assert found.hint_levels.hints_L == ()
