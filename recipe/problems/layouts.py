"""Turn the records of the public sets into fields of the contract: one function per layout.

A layout is the set of columns by which it is known, and what is made of them: ``problem``,
``answer``, and where there are some ``solution``, ``id`` and ``reward_model.kind``.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from recipe.problems.records import Fields, text, texts
from recipe.problems.schema import FieldFault
from recipe.verify.maths.grade import last_box

Made = dict[str, Any]
_KIND = {kind: {"kind": kind} for kind in ("choice", "program")}
# Name -> the columns a record must have, and what makes its fields.
LAYOUTS: dict[str, tuple[tuple[str, ...], Callable[[Fields], Made]]] = {
    "question": (("question", "answer"), lambda fields: _renamed(fields, "question", "problem")),
    "math500": (("unique_id", "answer"), lambda fields: _renamed(fields, "unique_id", "id")),
    "matharena": (("problem_idx", "answer"), lambda fields: _renamed(fields, "problem_idx", "id")),
    "plain": (("problem", "answer"), dict),
}


def _renamed(fields: Fields, old: str, new: str) -> Made:
    return {name: fields[name] for name in fields if name != old} | {new: fields[old]}


def fields_of(names: Sequence[str], fields: Fields) -> Made:
    """Return the contract's fields of a record, by the first layout whose columns it has."""
    for needs, make in (LAYOUTS[name] for name in names):
        if all(name in fields for name in needs):
            return make(fields)
    needs = [LAYOUTS[name][0] for name in names]
    missing = next(name for name in needs[0] if name not in fields)
    expected = " or ".join(map("+".join, needs))
    raise FieldFault(missing, f"expected {expected}; there are {', '.join(fields) or 'none'}")


def with_options(question: str, options: Sequence[str], letter: str, column: str) -> str:
    """Return a question with its options below it, lettered from (A); ``column`` has them."""
    letters = string.ascii_uppercase[: len(options)]
    if not 2 <= len(options) <= len(letters):
        raise FieldFault(column, f"a choice needs 2 to 26 options, got {len(options)}")
    if letter > letters[-1]:
        raise FieldFault("answer", f"the options end with {letters[-1]}, the answer is {letter}")
    lines = [f"({name}) {option.strip()}" for name, option in zip(letters, options, strict=True)]
    return "\n".join([question.strip(), "", *lines])


def _layout(*needs: str) -> Callable[[Callable[[Fields], Made]], Callable[[Fields], Made]]:
    def keep(make: Callable[[Fields], Made]) -> Callable[[Fields], Made]:
        LAYOUTS[make.__name__] = (needs, make)
        return make

    return keep


@_layout("problem", "answer", "data_source")
def release(fields: Fields) -> Made:
    """Read the release's own rows, whose indexes need not be unique."""
    extra_info = {**(fields.get("extra_info") or {}), "index": None}
    return {**fields, "id": None, "extra_info": extra_info}


@_layout("problem", "answer")
def plain_choice(fields: Fields) -> Made:
    """Read options as ``A. ...`` lines at the end of the problem, after ``Options:``."""
    made = {**fields, "reward_model": _KIND["choice"]}
    asked, mark, block = text(fields, "problem").rpartition("\nOptions:\n")
    if not mark:
        return made
    options: list[str] = []
    for line in block.split("\n"):
        if line.startswith(f"{chr(ord('A') + len(options))}. "):
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"  # an option of several lines
    letter = text(fields, "answer", is_required=True)
    return made | {"problem": with_options(asked, options, letter, "problem")}


@_layout("question", "final_answer")
def olympiadbench(fields: Fields) -> Made:
    """Read lists of answers and solutions; a context precedes some questions."""
    answers = [each.replace("$", "").strip() for each in texts(fields, "final_answer")]
    if not any(answers):
        raise FieldFault("final_answer", "is empty")
    context = text(fields, "context").strip()
    asked = text(fields, "question", is_required=True)
    return {
        "problem": f"{context}\n\n{asked}" if context else asked,
        "answer": ", ".join(answers),
        "solution": "\n\n".join(texts(fields, "solution")),
        "id": text(fields, "id"),
    }


@_layout("Question", "Correct Answer")
def gpqa(fields: Fields) -> Made:
    """Shuffle the options by the digest of the id: the right one is stored first."""
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    options = [text(fields, name, is_required=True) for name in names]
    row_id = f"gpqa_diamond/{text(fields, 'Record ID', is_required=True)}"
    order = sorted(range(4), key=lambda n: hashlib.sha256(f"{row_id}\x1f{n}".encode()).digest())
    letter = "ABCD"[order.index(0)]
    asked = text(fields, "Question", is_required=True)
    return {
        "problem": with_options(asked, [options[n] for n in order], letter, "Incorrect Answer 1"),
        "answer": letter,
        "solution": text(fields, "Explanation"),
        "id": row_id,
        "reward_model": _KIND["choice"],
    }


@_layout("question", "options", "answer")
def mmlu_pro(fields: Fields) -> Made:
    """Read a list of options, and the answer as a letter and as a number."""
    options, letter = texts(fields, "options"), text(fields, "answer", is_required=True)
    asked = text(fields, "question", is_required=True)
    problem = with_options(asked, options, letter, "options")
    index = text(fields, "answer_index")
    if index and index != str(ord(letter[0]) - ord("A")):
        raise FieldFault("answer_index", f"{index} is not the place of the answer {letter}")
    row_id = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    made = {"problem": problem, "answer": letter.strip(), "id": row_id}
    return made | {"reward_model": _KIND["choice"]}


@_layout("question", "answer")
def gsm8k(fields: Fields) -> Made:
    """Read worked steps with ``<<calculator notes>>``, then ``####`` and the number."""
    steps, mark, number = text(fields, "answer", is_required=True).rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    answer, solution = number.strip().replace(",", ""), re.sub(r"<<.*?>>", "", steps).strip()
    asked = text(fields, "question", is_required=True)
    return {"problem": asked, "answer": answer, "solution": solution}


@_layout("problem", "solution")
def math(fields: Fields) -> Made:
    """Read the answer from the solution's last box."""
    solution = text(fields, "solution", is_required=True)
    # A few solutions write \\fbox{...}, or \\boxed and a bare word.
    boxed = solution.replace("\\fbox", "\\boxed")
    box = last_box(re.sub(r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", boxed))
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    asked = text(fields, "problem", is_required=True)
    return {"problem": asked, "answer": box.text, "solution": solution}


@_layout("problem", "solution", "solution_hint")
def ghpo(fields: Fields) -> Made:
    """Read ``solution`` as the answer, boxed or bare, ``solution_hint`` as the solution."""
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    asked = text(fields, "problem", is_required=True)
    return {"problem": asked, "answer": answer, "solution": text(fields, "solution_hint")}


@_layout("prompt", "test_list")
def mbpp(fields: Fields) -> Made:
    """Read imports and asserts in lists, which the prompt shows, and a reference program."""
    return _program(fields, "prompt", "test_list", "task_id")


@_layout("problem", "tests")
def plain_program(fields: Fields) -> Made:
    """Read the same under other names."""
    return _program(fields, "problem", "tests", "id")


def _program(fields: Fields, problem: str, tests: str, row_id: str) -> Made:
    asserts = texts(fields, tests)
    if not asserts:
        raise FieldFault(tests, "is empty; a program is graded by its asserts")
    source = "\n".join([*texts(fields, "test_imports"), *asserts])
    code = text(fields, "code").strip()
    task = text(fields, problem, is_required=True).strip()
    return {
        "problem": f"{task}\n\nThe program must pass these tests:\n\n{source}",
        "answer": source,
        "solution": f"```python\n{code}\n```" if code else "",
        "id": text(fields, row_id),
        "reward_model": _KIND["program"],
    }
