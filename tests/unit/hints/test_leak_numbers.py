"""Where a number stands in a text, what it is, and which of its neighbours belong to it."""

from fractions import Fraction

import pytest

from recipe.hint.hints.leak_numbers import in_other_bases, numbers, sizes_of


def found(text, size):
    """Value, place and percent of each number of a size."""
    sizes = sizes_of({abs(Fraction(size))})
    return [
        (each.value, text[each.start : each.end], each.is_percent) for each in numbers(text, sizes)
    ]


@pytest.mark.parametrize(
    ("size", "writings"),
    [
        ("42", ["42", "4 2", "4.2e1", "420e-1", "4.2 * 10**1", r"4.2 \times 10^1", "forty-two"]),
        ("42", ["four two", "40 + 2", "40+2", "half of 84", "one more than 41", "3 less than 45"]),
        ("42", ["45 minus 3", "6 times 7", "6 × 7", r"6 \cdot 7", "3 x 14", "84 over 2"]),
        ("42", ["84 divided by 2", "10% of 420", "10 percent of 420", "3/4 of 56"]),
        ("42", ["three quarters of 56", "twice 21", "double 21", "the sum of 40 and 2"]),
        ("42", ["product of 6 and 7", "the difference between 45 and 3", "quotient of 84 and 2"]),
        ("32", ["2^5", "2**5"]),
        ("7", ["sqrt 49", "the square root of 49"]),
        ("3/2", ["square root of 9/4", "1 1/2", "1.5", "1,5", "one and a half", "3/2"]),
        ("3/4", [r"\frac34", "3 over 4", "three quarters", "75 out of 100", ".75"]),
        ("1437", ["1437", "1,437", "1 437", "1.437", "1437.0"]),
        ("1.437", ["1.437"]),
        ("3.14", ["three point one four", "3.14", "3,14"]),
        ("106", ["one hundred and six"]),
        ("2001", ["two thousand and one"]),
        ("12", ["a dozen", "twelve"]),
        ("6", ["half a dozen", "half of twelve"]),
    ],
)
def test_a_number_is_found_with_all_that_belongs_to_it(size, writings):
    for writing in writings:
        for text in (writing, f"so it is {writing}, she says"):
            assert found(text, size) == [(Fraction(size), writing, False)], text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # The braces around the last digits are no part of the number.
        (r"\frac{3}{4}", r"\frac{3}{4"),
        (r"\dfrac{ 3 }{ 4 }", r"\dfrac{ 3 }{ 4"),
    ],
)
def test_a_share_in_latex_begins_with_its_command(text, place):
    assert found(text, "3/4") == [(Fraction(3, 4), place, False)]


@pytest.mark.parametrize("sign", ["%", " %", r"\%", " percent", " per cent", " pct"])
def test_a_sign_of_percent_belongs_to_its_number(sign):
    assert found(f"about 20{sign} of it", 20) == [(20, f"20{sign}", True)]


@pytest.mark.parametrize(
    ("text", "value", "place"),
    [
        ("-20", -20, "-20"),
        ("it is -20", -20, "-20"),
        ("minus 20", -20, "minus 20"),
        ("negative 20", -20, "negative 20"),
        ("x-20", 20, "20"),
        (")-20", 20, "20"),
        ("is -(20)", 20, "20"),
    ],
)
def test_a_sign_before_a_number_is_its_own_unless_something_is_subtracted_from(text, value, place):
    assert found(text, 20) == [(value, place, False)]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        # An operator joins it to another number.
        ("5 - 20", 20),
        ("14 + 14 + 14", 28),
        ("14 + 14 + 14", 14),
        # A part of a longer number.
        ("12.5", "1/2"),
        ("12.5", 5),
        ("120", 20),
        # No operation: no sum, product, ... is named, and a whole number of something is no share.
        ("40 and 2", 42),
        ("2 of 21", 42),
        # The root of 50 is not 7, and a power above 40 digits is not computed.
        (r"\sqrt{50}", 7),
        ("2^99", 2**99),
        # Too far apart: 25 characters.
        ("40" + " " * 11 + "+" + " " * 13 + "2", 42),
        ("3/0", "3/4"),
        # 7/2 is no part of one, so 2 7/2 is no mixed number; .5 ends a version.
        ("2 7/2", "11/2"),
        ("1.2.5", "1/2"),
    ],
)
def test_a_number_that_is_not_there_is_not_found(text, size):
    assert found(text, size) == []


def test_the_root_of_what_is_no_square_is_no_whole_number():
    assert 1 not in [value for value, *_ in found(r"\sqrt{2}", 1)]


@pytest.mark.parametrize(
    ("text", "size"), [("1,2,3", 2), ("(1,2)", 2), ("2 of 84", 84), ("3/0", 3)]
)
def test_a_number_beside_others_is_found_alone(text, size):
    assert found(text, size) == [(size, str(size), False)]


@pytest.mark.parametrize(
    ("number", "writings"),
    [
        (42, ["XLII", "0x2a", "0b101010", "0o52", "101010 in base 2", "101010_2", "2a hex"]),
        (42, ["2A base 16", "52 base 8", "52 as octal", "101010 (binary"]),
        (1994, ["MCMXCIV"]),
        (3999, ["MMMCMXCIX"]),
    ],
)
def test_a_number_is_found_in_another_base(number, writings):
    for writing in writings:
        text = f"it is {writing}, she says"
        assert [text[each.start : each.end] for each in in_other_bases(text, number)] == [writing]


@pytest.mark.parametrize(
    ("text", "number"), [("I am", 1), ("52", 42), ("XLIIx", 42), ("MMMM", 4000), ("a0x2a", 42)]
)
def test_what_only_looks_like_another_base_is_none(text, number):
    assert list(in_other_bases(text, number)) == []


def test_a_letter_that_is_longer_in_small_letters_moves_no_place():
    # Two of them would move it by two.
    assert found("\u0130\u0130 42, she says", 42) == [(42, "42", False)]


@pytest.mark.parametrize("text", [r"3\frac12", r"3 \dfrac12", r"3\frac{1}{2}", "3 1/2", "3 frac12"])
def test_a_mixed_number_is_one_number_in_every_writing(text):
    [(value, place, _)] = found(f"it is {text}, she says", Fraction(7, 2))
    assert (value, place.rstrip("}")) == (Fraction(7, 2), text.rstrip("}"))
    assert found(f"it is {text}, she says", Fraction(1, 2)) == []


@pytest.mark.parametrize("text", [r"\sqrt{2}", "the square root of 3", "sqrt(1/2)"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_root_of_what_is_no_square_is_no_number_here(text, size):
    assert found(f"it is {text}, she says", size) == []
