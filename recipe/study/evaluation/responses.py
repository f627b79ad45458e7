"""The graded responses of an evaluation: ``RUN/evaluation/samples/BENCHMARK.jsonl``, a line each.

The folder and the columns are called samples on disk; in code a sample is what training keeps.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from recipe.run.errors import DataError
from recipe.run.whole_file import append_lines, drop_fragment
from recipe.study.evaluation.turns import TURN_FACTS
from recipe.verify.maths.reading import vote_key
from recipe.verify.schema import Reason

# Reasons of an answer that was read and graded; all others say why there is nothing to compare.
GRADED = frozenset({"correct", "wrong", "too_slow"})
_SHOWN = 3  # problems that a message lists
_Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, config=ConfigDict(strict=True, allow_inf_nan=False))
class GradedResponse:
    """One line of a response file, without the text: a large benchmark has gigabytes of them.

    ``sample`` is the response's number, 0..K-1; ``score`` is 1.0 exactly when ``reason`` is
    ``correct``, else 0.0. Fields that are not known are left out.
    """

    benchmark: str
    id: str
    sample: int
    seed: int | None
    score: float
    reason: Reason
    extracted: str
    prompt_tokens: _Count
    response_tokens: _Count
    is_truncated: bool
    seconds: float
    # Of a conversation with several turns, whose last one this is (``Conversation.facts``).
    facts: dict[str, float] | None = None

    @classmethod
    def from_json(cls, line: bytes, place: str) -> GradedResponse:
        """Read one line.

        Raises:
            DataError: Naming ``place`` and the field that is missing, has another type or
                contradicts another.
        """
        if not line.endswith(b"\n"):
            raise DataError(
                f"{place} is cut off, as a killed run leaves it; start the evaluation again, it "
                f"takes the line off and draws the response again"
            )
        try:
            response = _ADAPTER.validate_json(line)
        except ValidationError as error:
            fault = error.errors()[0]
            where = f"the field `{fault['loc'][0]}`: " if fault["loc"] else ""
            is_there = fault["loc"] and fault["type"] != "missing"
            got = f", got {fault['input']!r:.60}" if is_there else ""
            raise DataError(f"{place} is not a response: {where}{fault['msg']}{got}") from error
        if response.score != float(response.is_correct):
            raise DataError(
                f"{place}: score={response.score} and reason={response.reason!r} contradict each "
                f"other; the score is 1 when the reason is `correct`, else 0"
            )
        facts = response.facts
        for name in TURN_FACTS if facts is not None else ():
            value = (facts or {}).get(name)
            lowest = -1.0 if name == "delta" else 0.0
            if value is None or not lowest <= value <= 1.0:
                raise DataError(
                    f"{place} is not a response: the field `facts`: {name} is {value}, expected a "
                    f"number from {lowest:g} to 1"
                )
        return response

    @property
    def is_correct(self) -> bool:
        """Graded, and equal to the gold answer."""
        return self.reason == "correct"

    @property
    def answer_key(self) -> str:
        r"""What equal answers share, for a vote; empty when there is no graded answer.

        Numbers by value (``0.5`` and ``\frac{1}{2}``), all else by its tokens.
        """
        return vote_key(self.extracted) if self.reason in GRADED else ""


_ADAPTER = TypeAdapter(GradedResponse)
# Problem id -> its K responses, both in order, so that equal responses give equal floats.
Groups = dict[str, tuple[GradedResponse, ...]]
# (benchmark, problem id) -> the numbers of the responses that are on disk.
Done = dict[tuple[str, str], set[int]]


def problem_digests(folder: Path) -> dict[str, str]:
    """Return file -> SHA-256 of the problems that an evaluation drew responses to, if kept."""
    files = drawn_with(folder).get("files")
    return {str(k): str(v) for k, v in files.items()} if isinstance(files, dict) else {}


def drawn_with(folder: Path) -> dict[str, Any]:
    """Return the settings that an evaluation's responses were drawn with, if kept."""
    try:
        settings = json.loads((folder / "settings.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def response_path(folder: Path, benchmark: str) -> Path:
    """Return the file of a benchmark's responses; its name may hold a slash (``tiny/hard``)."""
    return folder / "samples" / f"{benchmark.replace('/', '__')}.jsonl"


def append_responses(folder: Path, benchmark: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of one problem at once and hand them to the disk.

    Half of a surrogate pair becomes ``?``: it is no JSON for other readers than Python's.
    """
    lines = (json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") for row in rows)
    append_lines(response_path(folder, benchmark), lines)


def read_responses(folder: str | Path) -> dict[str, list[GradedResponse]]:
    """Read all responses of an evaluation; nothing half-written is accepted.

    Texts are read and dropped one by one, so memory grows with the number of responses only.

    Args:
        folder: ``RUN/evaluation``.

    Returns:
        Benchmark -> its responses in the order of the files.

    Raises:
        DataError: There are no files, or a line is not a response; names file and line.
    """
    paths = sorted((Path(folder) / "samples").glob("*.jsonl"))
    if not paths:
        raise DataError(
            f"{folder} holds no samples/*.jsonl; it is written by a run with trainer.eval_only=true"
        )
    responses: defaultdict[str, list[GradedResponse]] = defaultdict(list)
    for path in paths:
        try:
            with open(path, "rb") as lines:
                for number, line in enumerate(lines, 1):
                    response = GradedResponse.from_json(line, f"{path}: line {number}")
                    responses[response.benchmark].append(response)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return dict(responses)


def resume_responses(folder: Path) -> Done:
    """Take off the lines that a kill has cut, and return what is on disk already.

    Raises:
        DataError: If another line is not a response.
    """
    paths = list((folder / "samples").glob("*.jsonl"))
    for path in paths:
        with open(path, "rb+") as file:
            drop_fragment(file)
    done: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for benchmark, responses in (read_responses(folder) if paths else {}).items():
        for response in responses:
            done[benchmark, response.id].add(response.sample)
    return dict(done)


def complete_groups(
    responses: Iterable[GradedResponse],
    num_responses: int,
    *,
    benchmark: str,
    ids: Collection[str] = (),
) -> Groups:
    """Group a benchmark's responses by problem, each problem with responses 0..K-1 exactly once.

    Args:
        responses: In any order.
        num_responses: K.
        benchmark: Its name, for messages.
        ids: The problems that there must be; when empty, those that have a response.

    Raises:
        DataError: Nothing is there, or a (problem, number) pair is missing, repeated or unknown.
    """
    found: defaultdict[str, list[GradedResponse]] = defaultdict(list)
    for response in responses:
        found[response.id].append(response)
    if not found:
        raise DataError(f"{benchmark}: no responses, so nothing to report; evaluate it first")
    wanted = sorted(set(ids) or found)
    have = {name: [each.sample for each in found.get(name, [])] for name in wanted}
    faults = {
        "problems that are not in the benchmark": sorted(found.keys() - have.keys()),
        f"responses that appear twice or beyond the expected {num_responses} in "
        f"{response_path(Path(), benchmark)} (start a new evaluation)": [
            name
            for name, numbers in have.items()
            if len(set(numbers)) < len(numbers)
            or any(k not in range(num_responses) for k in numbers)
        ],
        "responses that are missing (start the evaluation again to draw them)": [
            name for name, numbers in have.items() if len(numbers) < num_responses
        ],
    }
    for fault, names in faults.items():
        if names:
            shown = ", ".join(map(repr, names[:_SHOWN])) + " ..." * (len(names) > _SHOWN)
            raise DataError(f"{benchmark}: {fault}: {len(names)} problems, such as {shown}")
    return {name: tuple(sorted(found[name], key=lambda each: each.sample)) for name in wanted}
