"""How the records of the named sources become problems.

A layout is the set of columns by which it is known, and what is made of them. Each source knows
the layout of its hub repository; ``PLAIN`` ones are those of local copies with an id, a problem
and an answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recipe.hint.problems.drafts import Draft, check_letter, options_text
from recipe.hint.problems.local import Keys
from recipe.hint.problems.records import FieldFault, text, texts
from recipe.hint.verify.maths.reading import last_box

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where a record comes from: source, split, file inside the source, number in the file."""

    source: str
    split: str
    file: str
    number: int

    def id(self, given: str = "") -> str:
        """A stable id: the source's own, or the place at the pinned revision."""
        given = given.strip().strip("/") or f"{self.split}/{self.number}"
        return given if given.startswith(f"{self.source}/") else f"{self.source}/{given}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns a record must have, and the problem made of it."""

    needs: tuple[str, ...]
    draft: Callable[[Fields, SourceLocation], Draft]


def draft_with(layouts: tuple[Layout, ...], fields: Fields, location: SourceLocation) -> Draft:
    """The problem of a record, by the first layout whose columns it has.

    Raises:
        FieldFault: If no layout fits, or a field cannot be used.
    """
    for layout in layouts:
        if all(name in fields for name in layout.needs):
            return layout.draft(fields, location)
    missing = next(name for name in layouts[0].needs if name not in fields)
    expected = " or ".join("+".join(layout.needs) for layout in layouts)
    raise FieldFault(missing, f"expected {expected}; there are {', '.join(fields) or 'none'}")


def maths(
    problem: str = "problem", answer: str = "answer", *, id: str = "id", solution: str = "solution"
) -> Layout:
    """A layout with one column for each field; the id is the place where there is none."""

    def draft(fields: Fields, location: SourceLocation) -> Draft:
        made = Keys(problem, answer, solution, id).draft(fields)
        given = made.id.removesuffix(".json")
        return replace(made, id=location.id(given))

    return Layout((problem, answer), draft)


def _gsm8k(fields: Fields, location: SourceLocation) -> Draft:
    """Worked steps with ``<<calculator notes>>``, then ``####`` and the number."""
    steps, mark, number = text(fields, "answer", is_required=True).rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    return Draft(
        text(fields, "question", is_required=True),
        number.strip().replace(",", ""),
        re.sub(r"<<.*?>>", "", steps).strip(),
        location.id(),
    )


def _boxed(fields: Fields, location: SourceLocation) -> Draft:
    """The answer is the last box of the solution; a level and a type name the subject."""
    solution = text(fields, "solution", is_required=True)
    # A few solutions write \\fbox{...}, or \\boxed and a bare word.
    plain = re.sub(
        r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", solution.replace("\\fbox", "\\boxed")
    )
    box = last_box(plain)
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    subject = location.file.split("/")[0] if "/" in location.file else ""
    given = "/".join(filter(None, (location.split, subject, str(location.number))))
    return Draft(text(fields, "problem", is_required=True), box.text, solution, location.id(given))


def _olympiadbench(fields: Fields, location: SourceLocation) -> Draft:
    """Lists of answers and solutions; a context precedes some questions."""
    answers = [each.replace("$", "").strip() for each in texts(fields, "final_answer")]
    if not any(answers):
        raise FieldFault("final_answer", "is empty")
    context = text(fields, "context").strip()
    question = text(fields, "question", is_required=True)
    return Draft(
        f"{context}\n\n{question}" if context else question,
        ", ".join(answers),
        "\n\n".join(texts(fields, "solution")),
        location.id(text(fields, "id")),
    )


def _ghpo(fields: Fields, location: SourceLocation) -> Draft:
    """``solution`` holds the answer, boxed or bare; ``solution_hint`` the worked solution."""
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    problem = text(fields, "problem", is_required=True)
    return Draft(problem, answer, text(fields, "solution_hint"), location.id())


def _contract(fields: Fields, location: SourceLocation) -> Draft:
    """The release's own rows: the contract's columns, with indexes that need not be unique."""
    made = Keys().draft(fields)
    source = text(fields, "data_source").strip()
    return replace(made, id=location.id(), data_source=source)


def _mmlu_pro(fields: Fields, location: SourceLocation) -> Draft:
    options, letter = texts(fields, "options"), text(fields, "answer", is_required=True)
    problem = options_text(text(fields, "question", is_required=True), options)
    check_letter("answer", letter, len(options))
    index = text(fields, "answer_index")
    if index and index != str(ord(letter[0]) - ord("A")):
        raise FieldFault("answer_index", f"{index} is not the place of the answer {letter}")
    given = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    return Draft(problem, letter.strip(), "", location.id(given), "choice")


def _gpqa(fields: Fields, location: SourceLocation) -> Draft:
    """The right option is stored first, so options are shuffled, by the digest of the id."""
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    options = [text(fields, name, is_required=True) for name in names]
    row_id = location.id(text(fields, "Record ID"))
    order = sorted(range(4), key=lambda n: hashlib.sha256(f"{row_id}\x1f{n}".encode()).digest())
    return Draft(
        options_text(text(fields, "Question", is_required=True), [options[n] for n in order]),
        "ABCD"[order.index(0)],
        text(fields, "Explanation"),
        row_id,
        "choice",
    )


def _plain_choice(fields: Fields, location: SourceLocation) -> Draft:
    """Options as ``A. ...`` lines at the end of the problem, after a line ``Options:``."""
    made = Keys(kind="choice").draft(fields)
    question, mark, block = made.problem.rpartition("\nOptions:\n")
    if not mark:
        return replace(made, id=location.id(made.id))
    options: list[str] = []
    for line in block.splitlines():
        is_next = line.startswith(f"{chr(ord('A') + len(options))}. ")
        if is_next:
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"  # an option of several lines
    problem = options_text(question, options)
    check_letter("answer", made.answer, len(options))
    return replace(made, problem=problem, id=location.id(made.id))


def _program(problem: str, tests: str, row_id: str) -> Callable[[Fields, SourceLocation], Draft]:
    def draft(fields: Fields, location: SourceLocation) -> Draft:
        asserts = texts(fields, tests)
        if not asserts:
            raise FieldFault(tests, "is empty; a program is judged by its asserts")
        source = "\n".join([*texts(fields, "test_imports"), *asserts])
        code = text(fields, "code").strip()
        task = text(fields, problem, is_required=True).strip()
        return Draft(
            f"{task}\n\nThe program must pass these tests:\n\n{source}",
            source,
            f"```python\n{code}\n```" if code else "",
            location.id(text(fields, row_id)),
            "program",
        )

    return draft


PLAIN = maths()
PLAIN_CHOICE = Layout(("problem", "answer"), _plain_choice)
PLAIN_PROGRAM = Layout(("problem", "tests"), _program("problem", "tests", "id"))
GSM8K = Layout(("question", "answer"), _gsm8k)
BOXED = Layout(("problem", "solution"), _boxed)
OLYMPIADBENCH = Layout(("question", "final_answer"), _olympiadbench)
GHPO = Layout(("problem", "solution", "solution_hint"), _ghpo)
CONTRACT = Layout(("problem", "answer", "data_source"), _contract)
MMLU_PRO = Layout(("question", "options", "answer"), _mmlu_pro)
GPQA = Layout(("Question", "Correct Answer"), _gpqa)
MBPP = Layout(("prompt", "test_list"), _program("prompt", "test_list", "task_id"))
