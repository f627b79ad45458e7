"""The measure ``work``: first responses whose work ends in the answer, whatever they box."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from recipe import REPOSITORY
from recipe.problems.columns import read_problems
from recipe.run.whole_file import file_sha256
from recipe.study.responses import problem_digests, response_path
from recipe.worlds.two_turn import worked_digit

# Embedded worlds whose responses show their work after the box.
_WORLDS = ("two_turn", "three_turn")


def work_right(evaluation: Path, source: str, files: Sequence[Path]) -> Mapping[str, float]:
    """Return each problem's share of first responses whose work ends in the answer.

    Empty for other worlds, and where answers are not known or responses hold no conversation.

    Args:
        evaluation: The folder of an evaluation.
        source: Data source of the problems.
        files: The run's files of problems; the package's own of the same name serve too.
    """
    if source.split("/")[0] not in _WORLDS:
        return {}
    answers = _answers(evaluation, files)
    right: dict[str, list[bool]] = {}
    with open(response_path(evaluation, source), "rb") as lines:
        for row in map(json.loads, lines):
            turns = [each for each in row.get("conversation") or () if isinstance(each, dict)]
            first = [each.get("content") for each in turns if each.get("role") == "assistant"][:1]
            if not turns or row["id"] not in answers:
                return {}
            is_right = bool(first) and str(worked_digit(str(first[0]))) == answers[row["id"]]
            right.setdefault(row["id"], []).append(is_right)
    return {name: sum(each) / len(each) for name, each in right.items()}


def _answers(evaluation: Path, files: Sequence[Path]) -> dict[str, str]:
    """Return problem -> answer of all that an evaluation drew responses to.

    A file is known by the digest that the evaluation kept. Empty where one is not at hand.
    """
    digests = problem_digests(evaluation)
    found = {}
    packaged = (REPOSITORY / "data" / world / name for world in _WORLDS for name in digests)
    for path in (*files, *packaged):
        if path.is_file() and digests.get(path.name) == file_sha256(path):
            found.setdefault(path.name, path)
    if not digests or found.keys() != digests.keys():
        return {}
    return {each.id: each.answer for path in found.values() for each in read_problems(path)}
