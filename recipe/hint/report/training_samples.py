"""The samples that training keeps (``samples.jsonl``), a few lines of text each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.report.metrics import read_rows

_CHARS = 160
_RESPONSES = 3


def sample_lines(
    folder: str | Path, *, step: int | None = None, why: str | None = None, limit: int = 20
) -> list[str]:
    """Return the newest samples of a run for a terminal, and how many there are by reason.

    Text is the model's: what is not printable is escaped, so that it cannot act on the terminal.

    Args:
        folder: Folder of the run.
        step: Only those of this step.
        why: Only those kept for this reason.
        limit: Samples shown at most.

    Raises:
        DataError: There is no such file, line or sample.
    """
    path = Path(folder) / "samples.jsonl"
    if not path.exists():
        raise DataError(
            f"{path} is missing: training writes it with hint.samples.prompts_per_step above 0"
        )
    reasons: Counter[str] = Counter()
    num_found = 0
    newest: deque[dict[str, Any]] = deque(maxlen=limit)
    for row in read_rows(path):
        if step is None or row["step"] == step:
            reasons.update(row["why"])
            if why is None or why in row["why"]:
                num_found += 1
                newest.append(row)
    if not newest:
        there = ", ".join(f"{name} {count}" for name, count in sorted(reasons.items())) or "nothing"
        raise DataError(f"{path} has no such sample; at that step it has: {there}")
    try:
        lines = [line for row in newest for line in [*_sample(row), ""]]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} holds a line that is not a sample: {error!r}; take it out"
        ) from error
    counts = ", ".join(f"{name} {count}" for name, count in reasons.most_common())
    return [*lines, f"{len(newest)} of {num_found} samples shown; by reason: {counts}"]


def _sample(row: dict[str, Any]) -> Iterator[str]:
    yield (
        f"step {row['step']}  {plain(row['problem_id'])}  why: {', '.join(row['why'])}  "
        f"gold: {plain(row['answer'])}"
    )
    yield f"  problem: {plain(row['problem'])}"
    for each in row["rounds"]:
        if each["level"]:
            leaks = " (holds the answer)" if each["leaks"] else ""
            status = each["hint_status"]
            yield f"  hint {each['level']} {status}{leaks}: {plain(each['hint'])}"
    for response in row["responses"][:_RESPONSES]:
        yield from _response(response)
    if (rest := len(row["responses"]) + row["left_out"] - _RESPONSES) > 0:
        yield f"  and {rest} other verdicts"


def _response(response: dict[str, Any]) -> Iterator[str]:
    facts = [
        f"level {response['level']}, {len(response['rows'])} x {response['reason']}",
        f"by {response['basis']}",
        f"reward {response['reward']}",
        "trains" if response["trains"] else "does not train",
        *(["ignored: " + plain(response["ignored"])] if response["ignored"] else []),
        *(["second judge disagrees"] if response["second"] == "disagrees" else []),
        *(["new shape: " + plain(response["shape"])] if "new_shape" in response["why"] else []),
    ]
    yield f"  {', '.join(facts)}"
    yield f"    extracted: {plain(response['extracted'])}"
    if "response" in response:
        yield f"    response: {plain(response['response'], from_end=True)}"


def plain(text: str, *, from_end: bool = False) -> str:
    """Return one line of a text's beginning or end, without anything that is not printable."""
    line = " ".join(text.split())
    if len(line) > _CHARS:
        line = f"... {line[-_CHARS:]}" if from_end else f"{line[:_CHARS]} ..."
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )
