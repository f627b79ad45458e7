"""Values belong to the names that the question lists, and what it asks for may stand left of =."""

from __future__ import annotations

import itertools
import random

import pytest

from recipe.verify.maths.grade import grade_maths

SEED = 20_261_124
LISTS = (
    ("p", "q"), ("m", "b"), ("w", "d", "a"), ("a", "h", "k"), ("x", "y", "z"), ("u", "s"),
    ("T(4)", "T(5)", "T(6)"), ("d(3/5)", "d(7/9)"), (r"\alpha", "r"), ("c_1", "c_2"),
    ("p+q", "pq"), ("g(9)", "g(2)"),
)  # fmt: skip
QUESTIONS = (
    "What are the values of {}?",
    "Determine {}.",
    "Find the two numbers {}.",
    "For what values of {} do they meet?",
    "Find the real numbers {} for which both lines meet.",
    "The sums are told above. Compute {}. Give your answer as a list.",
)
EXPRESSIONS = (
    "m+n", "xy", "a^2", "|z|", r"\tan A", "f(f(20))", r"f^{-1}(6)+f^{-1}(7)", "[KLM]", "f'(2)",
    r"\cos\angle RPS", "x_{53}+x_{75}", "f(2,5)", "[\\triangle KLM]", r"a_1+a_2+\cdots+a_{50}",
    r"\frac{a}{b}", "100a+10b+c", r"\sqrt{u}+v", "h(7)", "2^x", r"\log_2 w",
)  # fmt: skip
ASKING = (
    "Find ${}$.",
    "The ratio is told above. What is the value of ${}$? Express your answer as an integer.",
    r"Compute \[{}.\]",
    "Then evaluate ${}$ for the pentagon.",
    "What is the largest possible value of ${}$?",
)


def is_right(answer, gold, problem):
    return grade_maths(rf"So \boxed{{{answer}}}.", gold, problem=problem).reason == "correct"


def listed(names, rng):
    """``$a$ and $b$``, ``$a, b$, and $c$``, ``$a,$ $b,$ and $c$``."""
    *first, last = names
    return rng.choice(
        [
            f"${', '.join(first)}$ and ${last}$",
            f"${', '.join(first)}$, and ${last}$",
            f"{' '.join(f'${name},$' for name in first)} and ${last}$",
            f"${', '.join(names)}$",
        ]
    )


def joined(rng, parts):
    return rng.choice([", ", ",", r",\ "]).join(parts)


def test_values_that_the_question_asks_for_by_name_are_taken_in_its_order():
    rng, num_wrong = random.Random(SEED), 0
    for names, question in itertools.product(LISTS, QUESTIONS):
        problem = f"Something is told of $y=mx+b$ first. {question.format(listed(names, rng))}"
        values = [str(n) for n in rng.sample(range(2, 90), len(names))]
        gold = ",".join(values)
        pairs = list(zip(names, values, strict=True))
        for order in itertools.permutations(range(len(names))):
            turned = [values[place] for place in order]
            is_same = turned == values
            assert is_right(joined(rng, turned), gold, problem) == is_same, (problem, turned)
            by_name = joined(rng, [f"{pairs[place][0]}={pairs[place][1]}" for place in order])
            assert is_right(by_name, gold, problem), (problem, gold, by_name)
            mixed = [f"{n}={v}" for n, v in zip(names, turned, strict=True)]
            for parts in (mixed, mixed[::-1]):
                text = joined(rng, parts)
                assert is_right(text, gold, problem) == is_same, (problem, gold, text)
            num_wrong += 3 * (not is_same)
    assert num_wrong >= 300


def test_a_tuple_has_the_order_in_which_the_problem_writes_its_names():
    rng = random.Random(SEED)
    for names in (n for n in LISTS if all(len(each) == 1 for each in n)):
        values = [str(n) for n in rng.sample(range(-40, 90), len(names))]
        gold = f"({','.join(values)})"
        problem = f"It passes through two points. Enter the ordered list $({','.join(names)})$."
        for order in itertools.permutations(range(len(names))):
            turned = [names[place] for place in order]
            of_turned = [values[place] for place in order]
            by_name = ", ".join(f"{n}={v}" for n, v in zip(turned, of_turned, strict=True))
            assert is_right(by_name, gold, problem), (problem, gold, by_name)
            assert is_right(f"({','.join(turned)})=({','.join(of_turned)})", gold, problem)
            if turned != list(names):
                wrong = ", ".join(f"{n}={v}" for n, v in zip(turned, values, strict=True))
                assert not is_right(wrong, gold, problem), (problem, gold, wrong)
                assert not is_right(f"({','.join(turned)})={gold}", gold, problem)


def test_what_the_question_asks_for_may_stand_left_of_the_gold_answer():
    for question, name in itertools.product(ASKING, EXPRESSIONS):
        problem = f"A pentagon is given with $s+t=9$. {question.format(name)}"
        assert is_right(f"{name} = 116", "116", problem), (problem, name)
        assert not is_right(f"{name} = 117", "116", problem), (problem, name)


def test_no_other_expression_may_stand_there():
    num_tried = 0
    for asked, name in itertools.permutations(EXPRESSIONS, 2):
        problem = f"We know that ${name}=7$. Find ${asked}$."
        if name in ("h(7)", "f'(2)"):  # f(2) = 5 is a name in any problem
            continue
        assert not is_right(f"{name} = 116", "116", problem), (problem, name)
        num_tried += 1
    assert num_tried >= 300


@pytest.mark.parametrize(
    ("problem", "answer", "gold"),
    [
        ("What is $4$ more than $1$?", "4=5", "5"),
        ("If $x+y=10$ and $xy=5$, what is $x^2+y^2$?", "x+y=90", "90"),
        ("If $x+y$ is 7 less than $xy$, what is $x$?", "xy=5", "5"),
        ("Find the sum of the roots of $x^2-5x+6$.", "x^2-5x+6=5", "5"),
        ("Find $m+n$.", "m+n=100+17=116", "116"),
        ("Find $m+n$.", "m+n=116, 117", "116"),
        ("Find $m+n$.", r"m+n=116\text{ or }117", "116"),
        ("Find $m+n$.", "m+n>116", "116"),
        ("Find $m+n$.", r"m+n\approx 116", "116"),
        ("Find $m+n$.", "m+n+1=116", "116"),
        ("Find $m+n$.", "2(m+n)=116", "116"),
        ("Find $m+n$.", "m+n=m+116", "116"),
        ("Find $m+n$.", "117=m+n=116", "116"),
        ("Find $m+n$. What is then the area?", "m+n=116", "116"),
        ("Compute $123\\cdot 456$ and call it $N$.", "N=123\\cdot 456", "56088"),
        ("What is $x^2+2x$ for $x=3$?", "x^2+2x=x^2+2x", "15"),
        ("Simplify $x$ times itself.", "x=x^2", "x^2"),
        ("Its speed is $v(t)=3t^2$. Find $a(t)$.", "v(t)=6t", "6t"),
        ("Let $x$ be the remainder.", "r(x)=-13x+3", "-13x+3"),
        ("Let $K$ be the area of the triangle.", "[ABC]=7", "7"),
        ("The slope $m$ is asked for, and $b$.", "b=3,m=4", "(3,4)"),
        ("", "b=3,m=4", "3,4"),
        ("What are $p$ and $q$?", "p=3,p=4", "3,4"),
        ("What are $p$ and $q$?", "q=3,4", "3,4"),
        ("What are $p$ and $q$?", "p=3,4,q=4", "3,4"),
    ],
)
def test_a_name_or_equation_that_says_something_else_is_wrong(problem, answer, gold):
    assert not is_right(answer, gold, problem)


@pytest.mark.parametrize(
    ("problem", "answer", "gold"),
    [
        ("Find all pairs of integers $x, y$ with $xy=6$ and $x>4$.", "(6,1),(5,2)", "(5,2),(6,1)"),
        ("Determine all possible values of $k$.", "9,4", "4,9"),
        ("Find the smallest and largest value of $k$.", "9,4", "4,9"),
        ("Find $m+n$.", r"m+n=100+16=116", "116"),
        ("Find $m+n$.", r"n+m=116", "116"),
        ("Find $x+y$.", r"y+x=5", "x+y=5"),
        ("Let $r(x)$ be the remainder. What is it?", "r(x)=-13x+3", "-13x+3"),
        ("The height is $s(t)$ metres. Give an equation.", "s(t)=6t", "6t"),
        ("The area is written $[ABCD]$. Which is it?", "[ABCD]=7", "7"),
        ("Solve the system.", "x=2, y=1", "(2,1)"),
        ("", "a=2, b=1", "2,1"),
        ("What are $p$ and $q$?", r"\text{Answer} = 3, 4", "3,4"),
    ],
)
def test_what_says_the_same_is_right(problem, answer, gold):
    assert is_right(answer, gold, problem)
