"""Turn the records of the public sets into rows: one function per set.

A layout is the set of columns by which it is known, and what is made of them. ``plain`` ones are
those of local copies with an id, a problem and an answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from recipe.problems.columns import Row
from recipe.problems.prepare import Keys, Origin, with_options
from recipe.problems.records import Fields, text, texts
from recipe.problems.schema import FieldFault
from recipe.verify.maths.grade import last_box

MakeRow = Callable[[Fields, Origin], Row]


class Layout(NamedTuple):
    """Columns a record must have, and what makes its row."""

    needs: tuple[str, ...]
    row: MakeRow


def row_with(layouts: tuple[Layout, ...], fields: Fields, origin: Origin) -> Row:
    """Return the row of a record, by the first layout whose columns it has."""
    for layout in layouts:
        if all(name in fields for name in layout.needs):
            return layout.row(fields, origin)
    missing = next(name for name in layouts[0].needs if name not in fields)
    expected = " or ".join("+".join(layout.needs) for layout in layouts)
    raise FieldFault(missing, f"expected {expected}; there are {', '.join(fields) or 'none'}")


def _needs(*columns: str) -> Callable[[MakeRow], Layout]:
    """Make a layout of a function that reads these columns."""
    return lambda row: Layout(columns, row)


def _columns(keys: Keys, *needs: str) -> Layout:
    """Read one column per field; ``needs`` defaults to those of the problem and the answer."""

    @_needs(*(needs or (keys.problem, keys.answer)))
    def layout(fields: Fields, origin: Origin) -> Row:
        row_id = text(fields, keys.id).strip().removesuffix(".json")
        return keys.row({**fields, keys.id: row_id}, origin)

    return layout


_PLAIN = Keys("problem", "answer", id="id")
plain = _columns(_PLAIN)
question = _columns(replace(_PLAIN, problem="question"))
math500 = _columns(replace(_PLAIN, id="unique_id"), "unique_id", "answer")
matharena = _columns(replace(_PLAIN, id="problem_idx"), "problem", "answer", "problem_idx")


@_needs("problem", "answer")
def plain_choice(fields: Fields, origin: Origin) -> Row:
    """Read options as ``A. ...`` lines at the end of the problem, after ``Options:``."""
    keys = replace(_PLAIN, kind="choice")
    row = keys.row(fields, origin)
    question, mark, block = row["problem"].rpartition("\nOptions:\n")
    if not mark:
        return row
    options: list[str] = []
    for line in block.split("\n"):
        if line.startswith(f"{chr(ord('A') + len(options))}. "):
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"  # an option of several lines
    problem = with_options(question, options, row["answer"], ("problem", "answer"))
    return keys.row({**fields, "problem": problem}, origin)


@_needs("problem", "answer", "data_source")
def sage(fields: Fields, origin: Origin) -> Row:
    """Read the release's own rows, whose indexes need not be unique."""
    source = text(fields, "data_source").strip() or origin.source
    extra_info = {**(fields.get("extra_info") or {}), "index": None}
    fields = {**fields, "id": None, "extra_info": extra_info}
    return _PLAIN.row(fields, replace(origin, source=source))


@_needs("question", "final_answer")
def olympiadbench(fields: Fields, origin: Origin) -> Row:
    """Read lists of answers and solutions; a context precedes some questions."""
    answers = [each.replace("$", "").strip() for each in texts(fields, "final_answer")]
    if not any(answers):
        raise FieldFault("final_answer", "is empty")
    context = text(fields, "context").strip()
    question = text(fields, "question", is_required=True)
    problem = f"{context}\n\n{question}" if context else question
    solution = "\n\n".join(texts(fields, "solution"))
    return origin.row(problem, ", ".join(answers), solution, row_id=text(fields, "id"))


@_needs("Question", "Correct Answer")
def gpqa(fields: Fields, origin: Origin) -> Row:
    """Shuffle the options by the digest of the id: the right one is stored first."""
    question = text(fields, "Question", is_required=True)
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    options = [text(fields, name, is_required=True) for name in names]
    row_id = origin.id(text(fields, "Record ID"))
    order = sorted(range(4), key=lambda n: hashlib.sha256(f"{row_id}\x1f{n}".encode()).digest())
    letter = "ABCD"[order.index(0)]
    problem = with_options(question, [options[n] for n in order], letter, (names[1], names[0]))
    return origin.row(problem, letter, text(fields, "Explanation"), row_id=row_id, kind="choice")


@_needs("question", "options", "answer")
def mmlu_pro(fields: Fields, origin: Origin) -> Row:
    """Read a list of options, and the answer as a letter and as a number."""
    options, letter = texts(fields, "options"), text(fields, "answer", is_required=True)
    question = text(fields, "question", is_required=True)
    problem = with_options(question, options, letter, ("options", "answer"))
    index = text(fields, "answer_index")
    if index and index != str(ord(letter[0]) - ord("A")):
        raise FieldFault("answer_index", f"{index} is not the place of the answer {letter}")
    row_id = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    return origin.row(problem, letter.strip(), row_id=row_id, kind="choice")


@_needs("question", "answer")
def gsm8k(fields: Fields, origin: Origin) -> Row:
    """Read worked steps with ``<<calculator notes>>``, then ``####`` and the number."""
    steps, mark, number = text(fields, "answer", is_required=True).rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    problem = text(fields, "question", is_required=True)
    answer = number.strip().replace(",", "")
    return origin.row(problem, answer, re.sub(r"<<.*?>>", "", steps).strip())


@_needs("problem", "solution")
def math(fields: Fields, origin: Origin) -> Row:
    """Read the answer from the solution's last box; the file's folder names the subject."""
    solution = text(fields, "solution", is_required=True)
    # A few solutions write \\fbox{...}, or \\boxed and a bare word.
    boxed = solution.replace("\\fbox", "\\boxed")
    box = last_box(re.sub(r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", boxed))
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    subject = origin.file.split("/")[0] if "/" in origin.file else ""
    row_id = "/".join(filter(None, (origin.split, subject, str(origin.number))))
    problem = text(fields, "problem", is_required=True)
    return origin.row(problem, box.text, solution, row_id=row_id)


@_needs("problem", "solution", "solution_hint")
def ghpo(fields: Fields, origin: Origin) -> Row:
    """Read ``solution`` as the answer, boxed or bare, ``solution_hint`` as the solution."""
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    problem = text(fields, "problem", is_required=True)
    return origin.row(problem, answer, text(fields, "solution_hint"))


def _program(problem: str, tests: str, row_id: str) -> Layout:
    """Read imports and asserts in lists, which the prompt shows, and a reference program."""

    @_needs(problem, tests)
    def layout(fields: Fields, origin: Origin) -> Row:
        asserts = texts(fields, tests)
        if not asserts:
            raise FieldFault(tests, "is empty; a program is graded by its asserts")
        source = "\n".join([*texts(fields, "test_imports"), *asserts])
        code = text(fields, "code").strip()
        task = text(fields, problem, is_required=True).strip()
        return origin.row(
            f"{task}\n\nThe program must pass these tests:\n\n{source}",
            source,
            f"```python\n{code}\n```" if code else "",
            row_id=text(fields, row_id),
            kind="program",
        )

    return layout


mbpp = _program("prompt", "test_list", "task_id")
plain_program = _program("problem", "tests", "id")
