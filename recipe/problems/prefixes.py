"""The command ``main_prepare.py prefixes``: beginnings of an evaluation's right responses."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.hints.solution_prefix import SolutionPrefix, unit_ends
from recipe.hint.settings import PrefixSettings
from recipe.problems.columns import check_target, read_problems
from recipe.problems.schema import Problem
from recipe.run.errors import DataError
from recipe.run.typed import finite
from recipe.study.evaluation.responses import GradedResponse, file_sha256, problem_digests
from recipe.study.offline_hints import OfflineReport, write_offline_hints

DESCRIPTION = """Writes beginnings of right responses into columns hint_level_1, hint_level_2, ...

main_prepare.py prefixes RUN IN.parquet OUT.parquet

RUN is the folder of an evaluation of IN.parquet (main_hint.py trainer.eval_only=true
data.val_files=IN.parquet), by the model that will train or by any other. A problem whose
right responses, if any, have nothing before the answer gets empty columns.
"""

# (data source, problem id) -> its right responses, in the order of their numbers
RightResponses = Mapping[tuple[str, str], Sequence[str]]


class Successes:
    """The hints of a problem are the beginnings of its right responses, one set for each of them.

    ``prefix`` says how long they are; they end before the final answer. A response with nothing
    before its answer is passed over.
    """

    def __init__(self, responses: RightResponses, prefix: SolutionPrefix) -> None:
        self._unread = {key: iter(texts) for key, texts in responses.items()}
        self._found: dict[tuple[str, str], list[HintResult]] = {}
        self._prefix = prefix

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the beginnings of usable response ``num_before``.

        Returns:
            ``missing_hint`` where there are not so many, ``missing_solution`` where there are right
            responses and none can be used.
        """
        key = (problem.data_source, problem.id)
        if key not in self._unread:
            return HintResult("missing_hint", detail="no right response")
        found = self._found.setdefault(key, [])
        while len(found) <= num_before:
            text = next(self._unread[key], None)
            if text is None:
                status = "missing_hint" if found else "missing_solution"
                return HintResult(status, detail="no more text before a final answer")
            result = await self._prefix.write(replace(problem, solution=text), generate)
            if result.status == "ok":
                found.append(result)
        return found[num_before]


def read_right_responses(folder: Path) -> RightResponses:
    """Return the different right responses of an evaluation of one turn.

    Raises:
        DataError: If the folder holds no evaluation, or a line is not a response to a problem.
    """
    paths = sorted((folder / "evaluation/samples").glob("*.jsonl"))
    if not paths:
        raise DataError(
            f"{folder} holds no evaluation/samples/*.jsonl; evaluate the training file with "
            f"main_hint.py trainer.eval_only=true data.val_files=IN.parquet hint.run_dir={folder}"
        )
    found: dict[tuple[str, str], dict[int, str]] = {}
    for path in paths:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                place = f"{path}: line {number}"
                graded = GradedResponse.from_json(line, place)
                if graded.facts is not None:
                    raise DataError(f"{place} is of several turns; prefixes are of one")
                if graded.is_correct:
                    texts = found.setdefault((graded.benchmark, graded.id), {})
                    texts[graded.sample] = json.loads(line)["response"]
    return {
        key: list(dict.fromkeys(text for _, text in sorted(texts.items())))
        for key, texts in found.items()
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; the defaults are those of ``hint.prefix``."""
    prefix = PrefixSettings()
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("input", type=Path, metavar="IN.parquet")
    parser.add_argument("output", type=Path, metavar="OUT.parquet")
    parser.add_argument(
        "--ratios",
        type=finite,
        nargs="+",
        default=prefix.ratios,
        metavar="SHARE",
        help="shares of the response, a level each (default: %(default)s)",
    )
    parser.add_argument("--unit", default=prefix.unit, choices=("char", "sentence"))
    parser.add_argument(
        "--per-prompt", type=int, default=1, metavar="N", help="right responses per problem"
    )


def run(given: argparse.Namespace) -> OfflineReport:
    """Write the file; the summary of the report is for the user.

    Raises:
        ConfigError: If the ratios do not grow from above 0 to below 1.
        DataError: If a file cannot be used, or no problem of the input has a right response.
    """
    if given.per_prompt < 1:
        raise DataError(f"--per-prompt must be at least 1, got {given.per_prompt}")
    check_target(given.output)
    how = PrefixSettings(tuple(given.ratios), given.unit)
    drawn_of = problem_digests(given.run / "evaluation").values()
    if drawn_of and file_sha256(given.input) not in drawn_of:
        raise DataError(
            f"{given.run} holds no responses to {given.input} as it is now, and ids alone do not "
            f"tell its problems apart; give the file that was evaluated, or evaluate this one"
        )
    responses = read_right_responses(given.run)
    if not any((each.data_source, each.id) in responses for each in read_problems(given.input)):
        raise DataError(f"{given.run} has no right response to a problem of {given.input}")
    prefix = SolutionPrefix(ratios=how.ratios, ends=unit_ends(how.unit, None))
    return asyncio.run(
        write_offline_hints(
            given.input,
            given.output,
            Successes(responses, prefix),
            max_level=len(how.ratios),
            per_prompt=given.per_prompt,
        )
    )
