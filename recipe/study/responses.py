"""The graded responses of an evaluation: ``RUN/evaluation/samples/BENCHMARK.jsonl``, a line each.

The folder and the columns are called samples on disk; in code a sample is what training keeps.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from recipe.run.errors import DataError
from recipe.verify.maths.reading import vote_key
from recipe.verify.schema import Reason

SETTINGS = "settings.json"
# Reasons of an answer that was read and graded; all others say why there is nothing to compare.
GRADED = frozenset({"correct", "wrong", "too_slow", "unsupported"})


@dataclass(frozen=True, slots=True, config=ConfigDict(strict=True, allow_inf_nan=False))
class GradedResponse:
    """One line of a response file, without the text: a large benchmark has gigabytes of them.

    ``sample`` is the response's number, 0..K-1; ``facts`` are those of the conversation with
    several turns that it ends (``Conversation.facts``), if they are known.
    """

    benchmark: str
    id: str
    sample: int
    score: float
    reason: Reason
    extracted: str
    response_tokens: int
    is_truncated: bool
    facts: dict[str, float] | None = None

    @property
    def is_correct(self) -> bool:
        """Graded, and equal to the gold answer."""
        return self.reason == "correct"

    @property
    def answer_key(self) -> str:
        r"""What equal answers share, for a vote: ``0.5`` and ``\frac{1}{2}``; else empty."""
        return vote_key(self.extracted) if self.reason in GRADED else ""


_ADAPTER = TypeAdapter(GradedResponse)
# Problem id -> its K responses, both in order, so that equal responses give equal floats.
Groups = dict[str, tuple[GradedResponse, ...]]


def read_kept(folder: Path) -> dict[str, Any]:
    """Return ``settings.json``, what an evaluation drew with; empty without."""
    path = folder / SETTINGS
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def response_path(folder: Path, benchmark: str) -> Path:
    """Return the file of a benchmark's responses; its name may hold a slash (``tiny/hard``)."""
    return folder / "samples" / f"{benchmark.replace('/', '__')}.jsonl"


def read_responses(folder: Path) -> dict[str, list[GradedResponse]]:
    """Read all responses below ``RUN/evaluation``, by benchmark; the texts are dropped.

    A last line without its end, which a kill leaves, is none.
    """
    responses: defaultdict[str, list[GradedResponse]] = defaultdict(list)
    for path in sorted((folder / "samples").glob("*.jsonl")):
        with open(path, "rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    response = _ADAPTER.validate_json(line)
                    responses[response.benchmark].append(response)
    return dict(responses)


def complete_groups(
    responses: Iterable[GradedResponse], num_responses: int, ids: Collection[str] = ()
) -> Groups:
    """Group a benchmark's responses by problem, ``ids`` among them.

    Raises:
        DataError: A problem does not have the responses 0..K-1 exactly once.
    """
    found: dict[str, list[GradedResponse]] = {name: [] for name in ids}
    for response in sorted(responses, key=lambda each: each.sample):
        found.setdefault(response.id, []).append(response)
    for name, group in found.items():
        if [each.sample for each in group] != list(range(num_responses)):
            raise DataError(
                f"problem {name!r} does not have the responses 0 to {num_responses - 1} once each; "
                f"the same command draws missing ones, another trainer.experiment_name starts a "
                f"new evaluation"
            )
    return {name: tuple(found[name]) for name in sorted(found)}
