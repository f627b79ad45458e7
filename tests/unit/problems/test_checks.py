"""What rows have in common: texts of a benchmark, repeated problems."""

from recipe.problems import checks
from recipe.problems.checks import shared_pairs, words
from recipe.problems.columns import Labels, make_row, write_rows
from recipe.problems.prepare import Prepared
from recipe.verify.pool.workers import VerifierPool

LONG = "A farmer has seven fields and in each of them stand twelve trees with nine birds; count"
OTHER = "Two trains start at noon in towns that lie three hundred kilometres apart and meet at two"


def prepared(*rows):
    return Prepared("in.jsonl", rows, tuple(f"line {n + 1}" for n in range(len(rows))))


def test_case_spacing_markup_and_spellings_make_no_other_problem_but_numbers_do():
    assert words(r"Find $\left( x \leq \frac12 \right)$!") == words("find (x <= \\dfrac{1}{2})")
    assert words("2 × 3 – 1") == words("2*3-1") != words("2*4-1")


def test_a_reworded_problem_is_found_and_others_are_not():
    assert shared_pairs([OTHER, LONG.upper()], [LONG]) == [(1, 0, 1.0)]
    longer = f"Before: read this carefully. {LONG}, and say it."
    assert shared_pairs([longer], [LONG]) == shared_pairs([LONG], [longer]) == [(0, 0, 1.0)]
    assert shared_pairs(["2+2?"], ["2 + 2", "2+3"]) == [(0, 0, 1.0)]
    assert shared_pairs(["", "?!"], ["", "..."]) == []


def test_an_instruction_behind_every_problem_is_no_text_in_common():
    behind = " Please reason step by step and put your final answer in a box at the end."
    benchmark = [f"Problem {n}: {'x' * n}?{behind}" for n in range(20)]
    assert shared_pairs([f"Mine: y?{behind}"], benchmark) == []


def test_overlaps_and_repeated_problems_are_named_in_pairs(tmp_path):
    write_rows([make_row(LONG, "1", row_id="b/7")], tmp_path / "bench.parquet")
    rows = prepared(make_row("a?", "1"), make_row(LONG, "2"), make_row(f" {LONG.lower()}", "2"))
    (found,) = checks.overlaps(rows, [tmp_path / "bench.parquet"], 10, 0.5)
    assert found.places == ("line 2 = b/7 (100%)", "line 3 = b/7 (100%)")
    with VerifierPool(1) as pool:
        found = checks.row_findings(rows, pool)
    assert ("line 3 = line 2",) in [each.places for each in found]


def test_letters_and_options_that_do_not_fit_their_kind_are_warnings():
    of_choice = make_row("Even?", "B", labels=Labels(kind="choice"))
    as_maths = make_row("Even?\n(A) 1\n(B) 2", "B", solution="2 is.")
    with VerifierPool(1) as pool:
        found = checks.row_findings(prepared(of_choice, as_maths), pool)
    assert [(each.column, each.places, each.is_note) for each in found] == [
        ("solution", ("line 1",), True),
        ("problem", ("line 1",), False),
        ("answer", ("line 2",), False),
    ]
