"""What a finished run of a campaign came to, read from its folder or from what was kept of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.hint.campaign import MEASURES, Run
from recipe.hint.errors import DataError
from recipe.hint.evaluation.responses import (
    GradedResponse,
    Groups,
    file_sha256,
    response_path,
)
from recipe.hint.evaluation.results import read_evaluation
from recipe.hint.problems.columns import read_problems
from recipe.hint.report.page.folder import PageRun, read_folder
from recipe.hint.report.runs import TOKENS
from recipe.hint.tiny.two_turn.task import worked_digit
from recipe.hint.typed import read_json

_WORK = "two_turn/"
_PACKAGED = Path(__file__).resolve().parents[3] / "data" / "two_turn"
# Beginnings of the metrics' names that a page of results reads.
_KEPT = (
    "step", "hint/prompts", "hint/used_", "hint/zero_signal_after", "hint/leaked",
    "hint/logprob_gain_", "reward_tracking/pct_never_", "turns/", "actor/entropy",
    "response_length/mean", "val-core/", "timing_s/step", "training/rollout_probs_diff_mean",
    *TOKENS,
)  # fmt: skip


@dataclass
class SeedResult:
    """What one run came to.

    Attributes:
        training: Its metrics and settings.
        means: Data source -> measure -> problem -> mean over the K responses.
        num_responses: K.
        sampling: What the responses were drawn with.
    """

    training: PageRun
    means: Mapping[str, Mapping[str, Mapping[str, float]]]
    num_responses: int
    sampling: Mapping[str, Any]

    def tokens(self, last_step: float = math.inf) -> float:
        """Return the tokens that training sampled up to a step, hints included."""
        rows = (row for row in self.training.training if row["step"] <= last_step)
        return sum(row.get(name, 0.0) for row in rows for name in TOKENS)

    def minutes(self, last_step: float = math.inf) -> float:
        """Return the minutes of the training steps up to one."""
        rows = (row for row in self.training.training if row["step"] <= last_step)
        return sum(row.get("timing_s/step", 0.0) for row in rows) / 60


def kept_text(result: SeedResult, run: Run) -> str:
    """Return what to keep of a run, as JSON: all that the page of results reads of it."""
    names = sorted({name for row in result.training.metrics for name in row})
    columns = {
        name: [row.get(name) for row in result.training.metrics]
        for name in names
        if name.startswith(_KEPT)
    }
    kept = {
        "made": run.as_json(),
        "num_responses": result.num_responses,
        "sampling": result.sampling,
        "machine": result.training.machine,
        "damaged": result.training.damaged,
        "means": result.means,
        "metrics": columns,
    }
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in kept.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_kept(path: Path, run: Run) -> SeedResult:
    """Read what was kept of a run.

    Raises:
        DataError: If it is damaged.
    """
    try:
        kept = read_json(path.read_bytes())
        columns = kept["metrics"]
        rows = [
            {
                name: float(value)
                for name, value in zip(columns, row, strict=True)
                if value is not None
            }
            for row in zip(*columns.values(), strict=True)
        ]
        training = PageRun(
            run.name, metrics=rows, damaged=Counter(kept["damaged"]), machine=dict(kept["machine"])
        )
        return SeedResult(training, kept["means"], int(kept["num_responses"]), kept["sampling"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def read_seed(place: Path, run: Run) -> SeedResult:
    """Read a finished run's folder.

    Raises:
        DataError: If it cannot be read.
    """
    evaluation = place / "evaluation"
    stored, groups = read_evaluation(evaluation)
    training = read_folder(place, with_visits=False)
    training.name = run.name
    means = {source: _means(of_source) for source, of_source in groups.items()}
    of_two_turns = [source for source in means if source.startswith(_WORK)]
    answers = _answers(evaluation, training) if of_two_turns else {}
    for source in of_two_turns:
        if work := _work(evaluation, source, answers):
            means[source]["work"] = work
    return SeedResult(training, means, stored["num_samples"], stored["sampling"])


def _means(groups: Groups) -> dict[str, dict[str, float]]:
    """Return measure -> problem -> mean over its responses."""
    found: dict[str, dict[str, float]] = {}
    for problem, responses in groups.items():
        facts = [_facts(each) for each in responses]
        for name in MEASURES:
            if all(name in each for each in facts):
                found.setdefault(name, {})[problem] = sum(each[name] for each in facts) / len(facts)
    return found


def _facts(response: GradedResponse) -> Mapping[str, float]:
    return response.facts or {"accuracy": response.score}


def _answers(evaluation: Path, training: PageRun) -> dict[str, str]:
    """Return problem -> answer of all that an evaluation drew responses to.

    The problems' files are the run's, or the package's own of the same name, known by the digest
    that the evaluation kept. Empty where one is not at hand.
    """
    digests = _digests(evaluation)
    given = training.setting("data.val_files")
    places = [Path(str(each)) for each in given] if isinstance(given, list) else []
    found = {}
    for path in (*places, *(_PACKAGED / name for name in digests)):
        if path.is_file() and digests.get(path.name) == file_sha256(path):
            found.setdefault(path.name, path)
    if not digests or found.keys() != digests.keys():
        return {}
    return {each.id: each.answer for path in found.values() for each in read_problems(path)}


def _work(evaluation: Path, source: str, answers: Mapping[str, str]) -> dict[str, float]:
    """Return each problem's share of first responses whose work ends in the answer.

    Empty where answers are not known, or responses hold no conversation.
    """
    right: dict[str, list[bool]] = {}
    for row in _rows(response_path(evaluation, source)):
        turns = [each for each in row.get("conversation") or () if isinstance(each, dict)]
        first = [each.get("content") for each in turns if each.get("role") == "assistant"][:1]
        if not turns or row["id"] not in answers:
            return {}
        is_right = bool(first) and str(worked_digit(str(first[0]))) == answers[row["id"]]
        right.setdefault(row["id"], []).append(is_right)
    return {name: sum(each) / len(each) for name, each in right.items()}


def _digests(evaluation: Path) -> dict[str, str]:
    """Return file -> SHA-256 of the problems that an evaluation drew responses to."""
    try:
        files = json.loads((evaluation / "settings.json").read_text("utf-8"))["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as lines:
        yield from map(json.loads, lines)
