"""The samples that training keeps (``samples.jsonl``), a few lines of text each."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError
from recipe.run.rows import read_rows
from recipe.study.tables import printable

_CHARS = 160
_VERDICTS = 3  # shown of a sample


def sample_lines(
    folder: str | Path, *, step: int | None = None, why: str | None = None, limit: int = 20
) -> list[str]:
    """Return the newest samples of a run for a terminal, and how many there are by reason.

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
    lines = []
    try:
        for row in read_rows(path):
            if step is None or row["step"] == step:
                reasons.update(row["why"])
                if why is None or why in row["why"]:
                    num_found += 1
                    newest.append(row)
        for row in newest:
            lines += [*_lines(row), ""]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} holds a line that is not a sample: {error!r}; take it out"
        ) from error
    if not newest:
        there = ", ".join(f"{name} {count}" for name, count in sorted(reasons.items())) or "nothing"
        raise DataError(f"{path} has no such sample; at that step it has: {there}")
    counts = ", ".join(f"{name} {count}" for name, count in reasons.most_common())
    lines.append(f"{len(newest)} of {num_found} samples shown; by reason: {counts}")
    # Text is the model's: escaped, it cannot act on the terminal.
    return [printable(line) for line in lines]


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [
        f"step {row['step']}  {_short(row['problem_id'])}  why: {', '.join(row['why'])}  "
        f"gold: {_short(row['answer'])}",
        f"  problem: {_short(row['problem'])}",
    ]
    for each in row["rounds"]:
        if each["level"]:
            leaks = " (holds the answer)" if each["leaks"] else ""
            status = each["hint_status"]
            lines.append(f"  hint {each['level']} {status}{leaks}: {_short(each['hint'])}")
    prompts = dict(enumerate(each.get("prompt", "") for each in row["rounds"]))
    responses = row["responses"]
    if is_multi_turn := not set(prompts.values()) <= {"", "bare", "hinted"}:
        responses = list({each["round"]: each for each in reversed(responses)}.values())[::-1]
    for verdict in responses[:_VERDICTS]:
        prompt = prompts.get(verdict.get("round"), "")
        facts = [
            prompt.replace("_", " ") if is_multi_turn and prompt else f"level {verdict['level']}",
            f"{len(verdict['rows'])} x {verdict['reason'].replace('_', ' ')}",
            *([f"by {verdict['basis']}"] if verdict["basis"] != "none" else []),
            f"reward {verdict['reward']}",
            "trains" if verdict["trains"] else "does not train",
            *(["ignored: " + _short(verdict["ignored"])] if verdict["ignored"] else []),
        ]
        lines.append(f"  {', '.join(facts)}")
        if verdict["extracted"]:
            lines.append(f"    extracted: {_short(verdict['extracted'])}")
        if "response" in verdict:
            lines.append(f"    response: {_short(verdict['response'], from_end=True)}")
    if (rest := len(row["responses"]) + row["left_out"] - _VERDICTS) > 0:
        lines.append(f"  and {rest} other verdicts")
    return lines


def _short(text: str, *, from_end: bool = False) -> str:
    """Return one line of a text's beginning or end."""
    line = " ".join(text.split())
    if len(line) > _CHARS:
        line = f"... {line[-_CHARS:]}" if from_end else f"{line[:_CHARS]} ..."
    return line
