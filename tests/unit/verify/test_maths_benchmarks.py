"""Over real benchmarks: every gold answer is accepted, and every change of its value rejected.

The rows are read from the folder that the environment variable HINT_BENCHMARK_DATA names; they
are no part of this repository. ``pytest -s`` shows the table and every failure.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from recipe.hint.verify import grade_maths

# Least share of own gold answers accepted.
BENCHMARKS = {"gsm8k_test": 1.0, "math500": 1.0, "aime24": 1.0, "olympiadbench": 0.995}
LEAST_ACCEPTED = 0.99  # of the same written otherwise
LEAST_REJECTED = 0.998
NUMERAL = re.compile(r"[0-9]*\.?[0-9]+")
FOLDER = os.environ.get("HINT_BENCHMARK_DATA")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason="HINT_BENCHMARK_DATA names no folder of benchmarks"),
]


def answers_of(name: str) -> list[str]:
    lines = (Path(FOLDER or "") / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


def value_of(answer: str) -> object:
    """A fraction for plain numbers and fractions, else the text; knows nothing of the verifier."""
    text = re.sub(r"\\left|\\right|\\!|\\ |\s|\$", "", answer).replace(r"\dfrac", r"\frac")
    text = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", text)
    match = re.fullmatch(r"(-?)\\frac\{(-?\d+)\}\{(\d+)\}", text)
    if match:
        return Fraction(int(match[1] + "1") * int(match[2]), int(match[3]))
    if re.fullmatch(r"-?[1-9][0-9]?(,[0-9]{3})+|-?[0-9]{3},000", text):
        text = text.replace(",", "")
    return Fraction(text) if re.fullmatch(r"-?[0-9]*\.?[0-9]+", text) else text


def plain(value: Fraction) -> str:
    return (
        str(value.numerator)
        if value.denominator == 1
        else f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    )


def with_numeral(answer: str, change) -> str:
    """``answer`` with its first numeral changed; unchanged when it has none."""
    text = re.sub(r"\\frac\s*(\d)(\d)", r"\\frac{\1}{\2}", answer)
    match = NUMERAL.search(text)
    return text[: match.start()] + change(match[0]) + text[match.end() :] if match else answer


def negated(answer: str) -> str:
    text = re.sub(r"\\frac\s*(\d)(\d)", r"\\frac{\1}{\2}", answer)
    match = NUMERAL.search(text)
    # (-2)^4 is 2^4, and minus zero is zero
    if match is None or text[match.end() :].lstrip().startswith("^") or not float(match[0]):
        return answer
    return f"{text[: match.start()]}(-{match[0]}){text[match.end() :]}"


def permuted(answer: str) -> str:
    numeral = max(NUMERAL.findall(answer), key=lambda found: len(set(found)), default="")
    digits = numeral.replace(".", "")
    turned = next((d for d in rotations(digits) if Fraction(d) != Fraction(digits)), None)
    if turned is None:
        return answer
    spelled = iter(turned)
    return answer.replace(numeral, "".join(c if c == "." else next(spelled) for c in numeral), 1)


def rotations(digits: str) -> Iterator[str]:
    yield from (digits[i:] + digits[:i] for i in range(1, len(digits)))


def perturbations(answers: list[str], row: int) -> Iterator[tuple[str, str]]:
    answer = answers[row]
    value = value_of(answer)
    others = (answers[(row + step) % len(answers)] for step in range(7, len(answers)))
    yield "another row", next(other for other in others if value_of(other) != value)
    if isinstance(value, Fraction):
        yield "plus one", plain(value + 1)
        yield "minus one", plain(value - 1)
        yield "sign", plain(-value)
    else:
        yield "plus one", with_numeral(answer, lambda text: plain(Fraction(text) + 1))
        yield "minus one", with_numeral(answer, lambda text: plain(Fraction(text) - 1))
        yield "sign", negated(answer)
    yield "digits", permuted(answer)


def respellings(answer: str) -> Iterator[tuple[str, str]]:
    """The same value written otherwise."""
    spaced = re.sub(r"(?<!\\)([+=])", r" \1 ", answer).replace(r"\frac", r"\dfrac")
    yield "spelling", f"$ {re.sub(r'(?<!left)[(]', r'(' + ' ', spaced)} $"
    value = value_of(answer)
    if isinstance(value, Fraction):
        yield "fraction", rf"\frac{{{3 * value.numerator}}}{{{3 * value.denominator}}}"
        yield "decimal", f"{value.numerator:,}.0" if value.denominator == 1 else plain(value)
    elif re.fullmatch(r"[^,=%$_]*", answer) and not re.search(
        r"\\(text|mbox|pm|in|cup|circ)", answer
    ):
        yield (
            "algebra",
            rf"\frac{{3 ({answer})}}{{3}}" if "(" not in answer[:2] else f"{answer} + 0",
        )
    parts = top_level_parts(answer)
    if len(parts) > 1 and not isinstance(value, Fraction):
        name, _, first = parts[0].rpartition("=")
        is_shared = name and not any("=" in part for part in parts[1:])
        turned = r" \text{ and } ".join(reversed([first, *parts[1:]] if is_shared else parts))
        yield "order", f"{name}={turned}" if is_shared else turned


def top_level_parts(answer: str) -> list[str]:
    parts, depth = [""], 0
    for char in answer:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def judged(answer: str, gold: str) -> str:
    return grade_maths(rf"The answer is \boxed{{{answer}}}.", gold).reason


def show(text: str) -> None:
    sys.stdout.write(f"{text}\n")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_accepts_its_own_gold_answers(name):
    answers = answers_of(name)
    failures = [(gold, reason) for gold in answers if (reason := judged(gold, gold)) != "correct"]
    share = 1 - len(failures) / len(answers)
    show(f"\n{name}: {len(answers)} own gold answers, accepted {share:.2%}, failures {failures}")
    assert share >= BENCHMARKS[name]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_accepts_its_gold_answers_written_otherwise(name):
    tried, failures = Counter(), []
    for gold in answers_of(name):
        for kind, same in respellings(gold):
            tried[kind] += 1
            if (reason := judged(same, gold)) != "correct":
                failures.append((kind, reason, gold, same))
    for kind, count in tried.items():
        bad = sum(failure[0] == kind for failure in failures)
        show(f"{name:14} {kind:12} tried {count:5} accepted {1 - bad / count:8.3%}")
    for failure in failures:
        show(f"  not accepted: {failure}")
    assert len(failures) <= (1 - LEAST_ACCEPTED) * sum(tried.values())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_rejects_answers_of_another_value(name):
    answers = answers_of(name)
    tried, undecided, failures = Counter(), Counter(), []
    for row, gold in enumerate(answers):
        for kind, wrong in perturbations(answers, row):
            if value_of(wrong) == value_of(gold):
                continue
            reason = judged(wrong, gold)
            tried[kind] += 1
            undecided[kind] += reason in ("error", "timeout")
            if reason == "correct":
                failures.append((row, kind, gold, wrong))
    total = sum(tried.values())
    for kind, count in tried.items():
        bad = sum(failure[1] == kind for failure in failures)
        show(
            f"{name:14} {kind:12} tried {count:5} rejected {1 - bad / count:8.3%} "
            f"of these without a verdict {undecided[kind]}"
        )
    show(f"{name:14} together     tried {total:5} rejected {1 - len(failures) / total:8.3%}")
    for failure in failures:
        show(f"  accepted: {failure}")
    assert len(failures) <= (1 - LEAST_REJECTED) * total
