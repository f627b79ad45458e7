"""Findings count rows and name their places."""

from dataclasses import replace
from pathlib import Path

import pytest

from recipe.problems import checks
from recipe.problems.checks import Pair, repeated, shared_pairs, words
from recipe.problems.columns import Labels, make_row, write_rows
from recipe.problems.prepare import Prepared
from recipe.run.errors import DataError
from recipe.verify.schema import Verdict

TINY = str(Path(__file__).parents[3] / "data" / "tiny" / "base")


def prepared(*rows):
    return Prepared("in.jsonl", rows, tuple(f"line {n}" for n, _ in enumerate(rows, 1)))


class FakePool:
    """Gives the reason that stands for each answer; anything else is wrong."""

    timeout_s = 10.0

    def __init__(self, reasons):
        self.reasons = reasons
        self.asked = []

    def grade_many_blocking(self, items, ids=None):
        self.asked += items
        return [Verdict(0.0, self.reasons.get(item.answer, "wrong")) for item in items]


def test_missing_solutions_are_a_note_with_places():
    (found,) = checks.missing_solutions(prepared(make_row("a", "1"), make_row("b", "1")))
    assert (found.rows, found.is_note) == ((0, 1), True)
    assert found.line("in.jsonl") == (
        "note: in.jsonl: 2 rows, column `solution`: empty, so these problems get no self-written"
        " hint (line 1, line 2)"
    )


def test_ids_that_some_rows_lack_are_a_note_and_a_file_without_any_is_none():
    rows = [make_row("a", "1", row_id="x"), make_row("b", "1"), make_row("c", "1")]
    (found,) = checks.missing_ids(prepared(*rows))
    assert (found.rows, found.places, found.is_note) == ((1, 2), ("line 2", "line 3"), True)
    assert checks.missing_ids(prepared(*rows[1:])) == checks.missing_ids(prepared(rows[0])) == []


def test_the_note_of_missing_solutions_names_the_files_own_column():
    rows = prepared(make_row("a", "1"), make_row("b", "1", solution="It is 1."))
    (some,) = checks.missing_solutions(replace(rows, solution_key="why"))
    assert "1 row, column `why`: empty, so these problems get no self-written hint (" in some.line(
        ""
    )
    (every,) = checks.missing_solutions(replace(rows.only([0]), solution_key="why"))
    assert "hint; --solution-key names another column (line 1)" in every.line("")


@pytest.mark.parametrize(
    ("answer", "solution", "is_found"),
    [
        ("999", "3 + 4 = 7.", True),
        ("7", "3 + 4 = 7.", False),
        ("7.0", "3 + 4 = 7", False),
        ("-7", "We owe 7", False),
        ("34", "3,4", True),
        ("2400", r"so 2,400 or 2{,}400", False),
        ("2,400", r"so \$2{,}400$", False),
        ("2400", r"so 2\,400, done", False),
        ("2400", r"so 2,\!400", False),
        (".5", "0.5", False),
        (r"\frac12", "0.5", False),  # no number in digits: not looked at
        ("9", "", False),
        ("9", "It is nine.", False),  # nothing to compare
        ("5", "15 or 51", True),
    ],
)
def test_a_gold_number_that_the_solution_does_not_mention_is_a_note(answer, solution, is_found):
    found = checks.other_results(prepared(make_row("a", answer, solution=solution)))
    assert [each.rows for each in found] == [(0,)] * is_found
    assert all(each.is_note for each in found)


def test_a_problem_repeated_under_another_id_is_a_warning():
    rows = [make_row(text, "1", row_id=text) for text in ("What is x?", "y", "what  is X")]
    (found,) = checks.repeated_problems(prepared(*rows))
    assert found.line("in.jsonl") == (
        "warning: in.jsonl: 1 row, column `problem`: the same words as an earlier row"
        " (line 3 = line 1)"
    )


def test_answers_that_are_not_read_or_too_slow_are_told_apart():
    rows = [make_row(str(n), answer) for n, answer in enumerate(("2", "t(0,4]", "9^9^9"))]
    rows.append(make_row("Even?", "B", labels=Labels("x", "test", "choice")))
    pool = FakePool({"t(0,4]": "error", "9^9^9": "timeout"})
    unread, slow = checks.unreadable_answers(prepared(*rows), pool)
    assert (unread.rows, unread.places) == ((1,), ("line 2: 't(0,4]'",))
    assert (slow.rows, slow.what) == ((2,), "not read within 10 s, so no response can be graded")
    assert [item.answer for item in pool.asked] == ["2", "t(0,4]", "9^9^9"]  # the choice is not


def test_an_answer_of_several_problems_is_read_once_and_told_of_all_of_them():
    answers = ["2", "9^9^9", "2", "t(0,4]", "9^9^9", *map(str, range(3000))]
    rows = [make_row(str(n), answer) for n, answer in enumerate(answers)]
    pool = FakePool({"9^9^9": "timeout"})
    unread, slow = checks.unreadable_answers(prepared(*rows), pool)
    assert (unread.rows, slow.rows) == ((3,), (1, 4))
    assert [item.answer for item in pool.asked] == list(dict.fromkeys(answers))


def test_prompts_above_the_limit_are_named_with_their_length():
    tokenizer = checks.load_tokenizer(TINY)
    rows = prepared(make_row("a", "1"), make_row("b" * 100, "1"))
    assert checks.long_prompts(rows, tokenizer, 1000) == []
    (found,) = checks.long_prompts(rows, tokenizer, 50)
    assert found.rows == (1,)  # letters are bytes, and bytes are tokens, to this tokenizer
    assert found.places[0].startswith("line 2: 1")
    assert found.what == "longer than 50 tokens"


REFUSES_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% for turn in messages %}{{ turn.content }}{% endfor %}"
)


def test_a_system_turn_that_the_template_refuses_counts_in_the_user_turn_as_in_a_run():
    tokenizer = checks.load_tokenizer(TINY)
    tokenizer.chat_template = REFUSES_SYSTEM
    rows = prepared(make_row("b" * 100, "1", system_prompt="s" * 50), make_row("a", "1"))
    (found,) = checks.long_prompts(rows, tokenizer, 151)
    assert found.places == ("line 1: 152",)  # the system's 50, a blank line, the user's 100


def test_a_prompt_that_the_template_refuses_in_any_form_is_named():
    tokenizer = checks.load_tokenizer(TINY)
    rows = prepared(make_row("a", "1"))
    message = r"in\.jsonl: line 1: the chat template of --tokenizer refuses the prompt: not this;"
    tokenizer.chat_template = "{{ raise_exception('not this') }}"
    with pytest.raises(DataError, match=message):
        checks.long_prompts(rows, tokenizer, 50)


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be loaded"):
        checks.load_tokenizer(str(tmp_path))


def test_shared_problems_are_named_in_pairs(tmp_path):
    text = "How many of the first hundred whole numbers can be divided by seven?"
    write_rows([make_row(text, "14", row_id="bench/0")], tmp_path / "bench.parquet")
    rows = prepared(make_row("x", "1"), make_row(text.upper(), "14"))
    (found,) = checks.overlaps(rows, [tmp_path / "bench.parquet"])
    assert (found.rows, found.places) == ((1,), ("line 2 = bench/0 (100%)",))
    assert "text shared with" in found.line("in.jsonl")


def test_long_lists_are_cut_and_can_be_had_whole():
    found = checks.Finding("problem", "x", tuple(range(7)), tuple("abcdefg"))
    assert found.line("p").endswith("(a, b, c, d, e and 2 more)")
    assert found.line("p", is_listed=True).endswith("(a, b, c, d, e, f, g)")


# -- shared problems are found whatever their case, spacing and markup, and others are not

LONG = (
    "A train leaves the station at noon and travels north at sixty miles per hour until it"
    " reaches the next town, where it waits."
)
OTHER = (
    "A baker makes forty loaves in the morning and sells three quarters of them before noon;"
    " how many loaves are left over at the end?"
)


def test_case_spacing_and_markup_do_not_make_another_problem():
    latex = r"Compute $\dfrac{1}{2}+x^2$, where  \left(x\right)=3."
    plain = r"compute \frac 1 2 + X^2 where (x) = 3"
    assert words(latex) == words(plain)
    assert words("Ｗhat is 3x?") == ("what", "is", "3", "x")


def test_numbers_and_signs_do():
    assert words("2+2") != words("2-2") != words("3-2")


def test_a_reworded_problem_is_found_and_others_are_not():
    shouted = LONG.upper().replace(" ", "   ")
    assert shared_pairs([OTHER, shouted], [LONG]) == [Pair(1, 0, 1.0)]


def test_a_problem_inside_a_longer_one_is_found_both_ways():
    longer = f"{OTHER} {LONG}"
    assert shared_pairs([longer], [LONG]) == [Pair(0, 0, 1.0)]
    assert shared_pairs([LONG], [longer]) == [Pair(0, 0, 1.0)]


def test_the_share_is_that_of_the_shorter_one_s_runs():
    first = " ".join("abcdefghijklmn")  # 14 words: 5 runs
    second = " ".join("abcdefghijklxyz")  # 15 words: 6 runs, the first 3 in common
    assert shared_pairs([first], [second], min_share=0.6) == [Pair(0, 0, 3 / 5)]
    assert shared_pairs([first], [second], min_share=0.61) == []


def test_short_problems_are_shared_only_as_a_whole():
    assert shared_pairs(["What is 2+2?"], ["what is 2 + 2", "What is 2+3?"]) == [Pair(0, 0, 1.0)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"1 \le n", r"1 \leq n"),
        (r"1 \le n", "1 ≤ n"),
        (r"n \geqslant 1", "n >= 1"),
        (r"n \ne 1", "n ≠ 1"),
        (r"\frac{1}{2}x", r"\frac12x"),
        (r"\dfrac{1}{2}x", r"\frac{1}{2}x"),
        ("x - y", "x \u2212 y"),
        (r"3 \times 4", "3 · 4"),
        (r"\sin 30^\circ", r"\sin 30°"),
        (r"2\pi", "2π"),
    ],
)
def test_spellings_of_one_formula_are_one_text(one, other):
    assert words(one) == words(other)
    around = "How many integers with {} are there between one and a hundred in this list of numbers"
    assert shared_pairs([around.format(one)], [around.format(other)])[0].share > 0.5


def test_a_short_problem_is_found_inside_a_longer_one_of_either_list():
    short = r"What is the value of $\sin 30^\circ$?"
    longer = rf"Solve: {short} Put your final answer within \boxed{{}}."
    assert shared_pairs([longer, "nothing"], [short]) == [Pair(0, 0, 1.0)]
    assert shared_pairs(["nothing", short], [longer]) == [Pair(1, 0, 1.0)]
    # Not one of four words and fewer, a phrase without a number, or a part of a formula.
    assert shared_pairs(["Find 5x. Then rest."], ["Find 5x."]) == []
    assert (
        shared_pairs(["A train leaves. Find the value of $x$."], ["Find the value of $x$."]) == []
    )
    assert shared_pairs([r"What is $2+3\cdot 4$?"], ["What is $2+3$?"]) == []
    assert shared_pairs(["What is $12+3$?"], ["What is $2+3$?"]) == []


def test_a_benchmark_that_repeats_its_problems_is_found_within_longer_texts():
    """Each of 32 rows has the same runs, which are no instruction for that."""
    longer = (
        "Solve the following math problem step by step and think well before you answer: " + LONG
    )
    pairs = shared_pairs([longer], [LONG] * 32)
    assert [(pair.second, pair.share) for pair in pairs] == [(n, 1.0) for n in range(32)]


def test_an_instruction_behind_every_problem_is_no_text_in_common():
    """12 benchmark problems of 4 words and an instruction of 11: each has 5 runs, 2 of them it."""
    instruction = "solve step by step and put the answer into a box"
    names = "abcdefghijkl"
    benchmark = [f"{name}a {name}b {name}c {name}d {instruction}" for name in names]
    mine = [f"{name}x {name}y {name}z {name}w {instruction}" for name in names]
    assert shared_pairs(mine, benchmark) == []
    assert shared_pairs([*mine, benchmark[7]], benchmark) == [Pair(12, 7, 1.0)]


def test_repeated_texts_name_the_earliest():
    assert repeated(["x y", "z", "X  y", "x y."]) == [(2, 0), (3, 0)]


@pytest.mark.parametrize("texts", [[], ["", "!!"]])
def test_nothing_is_shared_by_texts_without_words(texts):
    assert shared_pairs(texts, [LONG, ""]) == []
