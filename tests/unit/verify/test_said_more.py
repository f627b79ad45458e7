"""Right answers that say more than they need: domains, units, adjectives, signs in words."""

from __future__ import annotations

import itertools

import pytest

from recipe.verify.maths.grade import grade_maths


def is_right(answer: str, gold: str, problem: str = "") -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


LINKS = [
    ", ",
    "; ",
    r" \text{ and } ",
    r" \text{ or } ",
    r",\ \text{and } ",
    r" \quad \text{or} \quad ",
]
DOMAINS = [
    r" \text{ for all } x",
    r" \ \forall x",
    r" \text{ for all real } x",
    r" \; \forall x \in \mathbb{R}",
]
FUNCTIONS = (
    "Find all functions $f$ from the reals to the reals such that ... for all real $x$, $y$."
)


@pytest.mark.parametrize("link", LINKS)
def test_each_function_of_a_list_has_its_own_domain(link):
    for one, two in (("x", "-x"), ("0", "x"), ("x", "2-x")):
        gold = f"f(x)={one},f(x)={two}"
        for domain in DOMAINS:
            if "x" in one:
                assert is_right(f"f(x)={one}{domain}{link}f(x)={two}{domain}", gold, FUNCTIONS)
            assert is_right(f"f(x)={one}{link}f(x)={two}{domain}", gold, FUNCTIONS)
            wrong = f"f(x)={one}{domain}{link}f(x)={two}+1{domain}"
            assert not is_right(wrong, gold, FUNCTIONS)
            assert not is_right(f"f(x)={one}{domain}", gold, FUNCTIONS)
        for narrow in (r" \text{ for some } x", r" \text{ for } x > 1", r" \text{ for } x = 2"):
            assert not is_right(f"f(x)={one}{narrow}{link}f(x)={two}", gold, FUNCTIONS)
            assert not is_right(f"f(x)={one}{link}f(x)={two}{narrow}", gold, FUNCTIONS)


UNITS = {
    "m/s": "meters per second",
    "m^2": "square meters",
    "km/h": "kilometers per hour",
    "m/s^2": "meters per second squared",
    "g/cm^3": "grams per cubic centimeter",
    "cm^{2}": "square centimeters",
    "ft^2": "square feet",
    "L/min": "liters per minute",
}
FONTS = [
    r"\ \mathrm{@}",
    r"\,\mathrm{@}",
    r"\mathrm{@}",
    r"\ \mathsf{@}",
    r"\text{ @}",
    r"~\mathrm{@}",
]


def test_a_unit_in_an_upright_font_is_the_one_in_text():
    for (unit, words), font in itertools.product(UNITS.items(), FONTS):
        answer = "12" + font.replace("@", unit)
        assert is_right(answer, "12", f"What is the answer in {words}?")
        for other, its_words in UNITS.items():
            if other != unit:
                assert not is_right(answer, "12", f"What is the answer in {its_words}?")
        assert not is_right(answer, "13", f"What is the answer in {words}?")


def test_letters_in_an_upright_font_are_still_a_product():
    for gold in ("2m/s", "2m^2"):
        assert is_right(rf"2\mathrm{{{gold[1:]}}}", gold)
        assert is_right(rf"\mathrm{{{gold}}}", gold)
    assert not is_right(r"2\mathrm{m/s}", r"\frac{2s}{m}")
    assert not is_right(r"2\mathrm{m^2}", "2m")


ADJECTIVES = ["different", "distinct", "possible", "such"]


@pytest.mark.parametrize("adjective", ADJECTIVES)
def test_an_adjective_before_what_is_counted_says_nothing_more(adjective):
    for noun, ask in itertools.product(("triples", "paths", "integers"), ("", " positive", " odd")):
        problem = f"How many{ask} {noun} are there?"
        assert is_right(rf"601 \text{{ {adjective} {noun}}}", "601", problem)
        wrong = [
            rf"601 \text{{ {adjective} pencils}}",
            rf"601 \text{{ {adjective}}}",
            rf"601 \text{{ {noun} {adjective}}}",
            rf"601 \text{{ {adjective} pairs of {noun}}}",
            rf"601 \text{{ {adjective} hundreds of {noun}}}",
            rf"601 \text{{ not {adjective} {noun}}}",
            rf"602 \text{{ {adjective} {noun}}}",
        ]
        assert [each for each in wrong if is_right(each, "601", problem)] == []


def test_negative_before_one_number_is_its_sign():
    for number, word in itertools.product((7, 12, "0.5"), ("negative", "Negative", "minus")):
        answer = rf"\text{{{word} }}{number}"
        assert is_right(answer, f"-{number}")
        assert is_right(rf"{answer} \text{{ degrees}}", f"-{number}", "How many degrees is it?")
        for gold in (f"{number}", "-8"):
            assert not is_right(answer, gold)
        assert not is_right(f"{answer}+1", f"1-{number}")
        assert not is_right(rf"\text{{not {word} }}{number}", f"-{number}")
        assert not is_right(rf"\text{{non}}{answer}", f"-{number}")


def test_an_equation_may_be_turned_but_not_unsolved():
    problem = "Express $k$ in terms of $n$."
    for value in ("n+1", "2n", "n^2-3"):
        assert is_right(f"{value} = k", f"k={value}", problem)
        for wrong in (f"k-({value}) = 0", f"2k = 2({value})", f"{value} = k+1", f"{value}+k = k"):
            assert not is_right(wrong, f"k={value}", problem)


def test_the_real_numbers_but_some_are_a_union():
    problem = "Find the domain of $f(x)$."
    for n in (2, -3, 10):
        gold = rf"(-\infty,{n})\cup({n},\infty)"
        right = [
            rf"x \in \mathbb{{R}}, x \neq {n}",
            rf"\{{x \mid x \in \mathbb{{R}}, x \ne {n}\}}",
            rf"\text{{all real numbers except }} {n}",
            rf"\text{{All real numbers except }} x = {n}",
            rf"\text{{all real numbers }} x \ne {n}",
        ]
        assert [each for each in right if not is_right(each, gold, problem)] == []
        wrong = [
            rf"x \in \mathbb{{Z}}, x \neq {n}",
            rf"x \in \mathbb{{R}}, x > {n}",
            rf"\text{{all real numbers except }} {n + 1}",
            rf"\text{{all real numbers except }} {n}, {n + 1}",
            rf"\text{{all real numbers except }} x > {n}",
            rf"\text{{all real numbers }} {n}",
            rf"\text{{all real numbers }} x = {n}",
            r"\text{all real numbers}",
            rf"\text{{all integers except }} {n}",
            rf"y \in \mathbb{{R}}, x \neq {n}",
        ]
        assert [each for each in wrong if is_right(each, gold, problem)] == []
        ray = rf"({n},\infty)"
        assert is_right(rf"\text{{all real numbers }} x > {n}", ray, problem)
        assert is_right(rf"x \in \mathbb{{R}}, x > {n}", ray, problem)
        assert not is_right(rf"\text{{all real numbers }} x \ge {n}", ray, problem)
        assert not is_right(rf"\text{{all real numbers except }} {n}", f"{n}", problem)
