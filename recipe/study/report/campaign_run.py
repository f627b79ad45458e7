"""Results of one finished campaign run, read from its folder or from what was kept of it."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from recipe.run.errors import DataError
from recipe.run.rows import accuracies
from recipe.study.campaign import DIFFERENCES, MEASURES, MODEL_FOLDER, Run
from recipe.study.report.page.folder import LEVEL, PageRun, is_level, read_folder
from recipe.study.report.runs import TOKENS, VLLM_DIFFERENCE
from recipe.study.responses import (
    Groups,
    problem_digests,
)
from recipe.study.results import read_evaluation
from recipe.verify.schema import UNGRADED

# What a page shows beside what every evaluation has: measure -> how it is read from the folder of
# an evaluation, for one data source and given the run's files of problems; empty where it is not.
MoreMeasures = Mapping[str, Callable[[Path, str, Sequence[Path]], Mapping[str, float]]]
# Beginnings of the metrics' names that a page of results reads.
_KEPT = (
    "step", "hint/prompts", "hint/used_", "hint/zero_signal_after", "hint/leaked",
    "reward_tracking/pct_never_", "turns/", "actor/entropy",
    "response_length/mean", "val-core/", "timing_s/step", VLLM_DIFFERENCE,
    *TOKENS,
)  # fmt: skip
_NOT_NEGATIVE = (*TOKENS, "step", "timing_s/step")


@dataclass
class SeedResult:
    """What one run came to.

    Attributes:
        training: Its metrics and settings.
        means: Data source -> measure -> problem -> mean over the K responses; of conversations over
            those that the verifier could compare.
        num_responses: K.
        sampling: What the responses were drawn with.
        files: File of problems -> its SHA-256; empty where it was not kept.
        ungraded: Data source -> problem -> how many of its K the verifier failed on.
    """

    training: PageRun
    means: Mapping[str, Mapping[str, Mapping[str, float]]]
    num_responses: int
    sampling: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    ungraded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def problems(self, source: str) -> set[str]:
        """Return the problems of a data source that were answered, whatever the grades."""
        return set(self.ungraded.get(source, {})).union(*self.means.get(source, {}).values())

    def values(self, source: str, measure: str, end: int | None = None) -> Mapping[str, float]:
        """Return problem -> mean.

        Args:
            source: The data source.
            measure: One of ``MEASURES``.
            end: With 0 or 1 as if each response that the verifier failed on had the least or the
                largest value that there can be.
        """
        known = self.means.get(source, {}).get(measure, {})
        failed = {} if measure == "work" else self.ungraded.get(source, {})
        if end is None or not known or not failed:
            return known
        value = -1.0 if not end and measure in DIFFERENCES else float(end)
        size = self.num_responses
        # A failed grade counts as 0 in `accuracy`, and not at all in what compares two turns.
        weight = {name: size - (measure != "accuracy") * failed.get(name, 0) for name in known}
        return dict(known) | {
            name: (known.get(name, 0.0) * weight.get(name, 0) + value * failed.get(name, 0)) / size
            for name in {*known, *failed}
        }

    def numbers(self) -> tuple[Any, ...]:
        """Return what a page shows as results of it."""
        last_step, tokens = self.training.last_step, self.tokens()
        return self.means, self.ungraded, self.num_responses, last_step, tokens

    def steps_with_tokens(self) -> int:
        """Return the number of training steps, 0 where a part of their tokens is not known."""
        rows = self.training.training
        has_all = all(name in row for row in rows for name in TOKENS)
        steps = [row["step"] for row in rows]
        is_complete = has_all and not self.training.damaged and steps == [*range(1, len(steps) + 1)]
        return len(steps) if is_complete else 0

    def tokens(self, last_step: float = math.inf) -> float:
        """Return the tokens that training sampled up to a step, hints included."""
        rows = (row for row in self.training.training if row["step"] <= last_step)
        return sum(row.get(name, 0.0) for row in rows for name in TOKENS)

    def minutes(self, last_step: float = math.inf) -> float | None:
        """Return the minutes of the training steps up to one; ``None`` if one has no time.

        A line that was restored after a kill has none.
        """
        rows = [row for row in self.training.training if row["step"] <= last_step]
        seconds = [row[_TIME] for row in rows if _TIME in row]
        return sum(seconds) / 60 if len(seconds) == len(rows) else None


_TIME = "timing_s/step"
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


@dataclass
class _Kept:
    """What a kept file holds."""

    made: dict[str, Any]
    num_responses: Annotated[int, Field(ge=1, le=1_000_000)]
    sampling: dict[str, Any]
    machine: dict[str, Any]
    damaged: dict[str, int]
    means: dict[str, dict[str, dict[str, _Share]]]
    metrics: dict[str, list[_Number | None]]
    files: dict[str, str] = field(default_factory=dict)
    ungraded: dict[str, dict[str, Annotated[int, Field(ge=1)]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no run writes.

        Raises:
            ValueError: Naming it.
        """
        steps = self.metrics.get("step", [])
        if not steps or None in steps:
            raise ValueError("metrics has no whole column of steps")
        wrong = [name for name in self.metrics if name.startswith(LEVEL) and not is_level(name)]
        if wrong:
            raise ValueError(f"{wrong[0]} names no level")
        for name, values in self.metrics.items():
            highest = 1.0 if accuracies({name: 0.0}) else math.inf
            is_bounded = name in _NOT_NEGATIVE or highest == 1.0
            if is_bounded and not all(0 <= each <= highest for each in values if each is not None):
                raise ValueError(f"{name} is out of range")
        for source, measures in self.means.items():
            for measure, by_problem in measures.items():
                lowest = -1.0 if measure in DIFFERENCES else 0.0
                if measure not in MEASURES or not by_problem or min(by_problem.values()) < lowest:
                    raise ValueError(f"means of {source!r} have {measure!r} out of range")
            if not source.isprintable():
                raise ValueError(f"{source!r} is not a data source")


def kept_text(result: SeedResult, run: Run) -> str:
    """Return what to keep of a run, as JSON: all that the page of results reads of it."""
    names = sorted({name for row in result.training.rows for name in row})
    columns = {
        name: [row.get(name) for row in result.training.rows]
        for name in names
        if name.startswith(_KEPT)
    }
    kept = {
        "made": run.as_json(),
        "num_responses": result.num_responses,
        "sampling": result.sampling,
        "files": result.files,
        "machine": result.training.machine,
        "damaged": result.training.damaged,
        "ungraded": result.ungraded,
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
        kept = TypeAdapter(_Kept).validate_json(path.read_bytes(), strict=True)
        rows = [
            {
                name: value
                for name, value in zip(kept.metrics, row, strict=True)
                if value is not None
            }
            for row in zip(*kept.metrics.values(), strict=True)
        ]
    except ValueError as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {}
        place = ".".join(map(str, first.get("loc", ())))
        why = f"{place}: {first['msg']}" if place else first.get("msg", str(error))
        raise DataError(f"{path} is damaged: {why}; keep the run again") from error
    training = PageRun(
        run.name, rows=rows, damaged=Counter(kept.damaged), machine=dict(kept.machine)
    )
    sampling, files = kept.sampling, kept.files
    return SeedResult(training, kept.means, kept.num_responses, sampling, files, kept.ungraded)


def read_seed(place: Path, run: Run, more: MoreMeasures) -> SeedResult:
    """Read a finished run's folder.

    Raises:
        DataError: If it cannot be read, or is of other weights.
    """
    evaluation = place / "evaluation"
    stored, groups = read_evaluation(evaluation)
    model = PurePath(str(stored["model"]))
    if model.parts[-3:] != (*PurePath(run.name).parts, MODEL_FOLDER):
        raise DataError(
            f"{evaluation} is of {model}, expected the weights of the run's last step in "
            f"{run.name}/{MODEL_FOLDER}; delete it to make it again"
        )
    training = read_folder(place, with_visits=False)
    training.name = run.name
    is_multi_turn = any(
        each.facts for group in groups.values() for found in group.values() for each in found
    )
    means = {source: _means(each, is_multi_turn=is_multi_turn) for source, each in groups.items()}
    ungraded = {
        source: _ungraded(each, is_multi_turn=is_multi_turn) for source, each in groups.items()
    }
    given = training.setting("data.val_files")
    paths = [Path(str(each)) for each in given] if isinstance(given, list) else []
    for source, (name, measure) in itertools.product(means, more.items()):
        if found := measure(evaluation, source, paths):
            means[source][name] = dict(found)
    sampling, files = stored["sampling"], problem_digests(evaluation)
    ungraded = {source: each for source, each in ungraded.items() if each}
    return SeedResult(training, means, stored["num_samples"], sampling, files, ungraded)


def _means(groups: Groups, *, is_multi_turn: bool) -> dict[str, dict[str, float]]:
    """Return measure -> problem -> mean over its responses, or its known conversations."""
    found: dict[str, dict[str, float]] = {}
    for problem, responses in groups.items():
        facts = [each.facts if is_multi_turn else {"accuracy": each.score} for each in responses]
        known = [each for each in facts if each]
        for name in MEASURES:
            if known and all(name in each for each in known):
                found.setdefault(name, {})[problem] = sum(each[name] for each in known) / len(known)
    return found


def _ungraded(groups: Groups, *, is_multi_turn: bool) -> dict[str, int]:
    """Return problem -> number of responses without a grade, or of conversations with such an end.

    Problems without any are left out.
    """
    counts = {
        problem: sum(
            not each.facts if is_multi_turn else each.reason in UNGRADED for each in responses
        )
        for problem, responses in groups.items()
    }
    return {problem: count for problem, count in counts.items() if count}
