"""Results of an evaluation: computed from its sample files, written, read back and checked."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.evaluation.samples import Groups, complete_groups
from recipe.hint.evaluation.summary import Macro, Summary, macro_averages, summarise
from recipe.hint.report.evaluation_table import evaluation_table
from recipe.hint.report.metrics import is_number
from recipe.hint.report.samples import read_samples
from recipe.hint.typed import read_json
from recipe.hint.whole_file import write_whole

FORMAT = 1
_RESULTS, _TABLE = "results.json", "table.md"
_CLOCK = "wall_s"  # measured by the run, not computed from samples
# Sums of floats may end in another last digit on another processor.
_RELATIVE = 1e-9


@dataclass(frozen=True, slots=True)
class Results:
    """All that ``results.json`` holds; ``wall_s`` is seconds per benchmark."""

    model: str
    sampling: dict[str, Any]
    num_samples: int
    benchmarks: dict[str, Summary]
    wall_s: dict[str, float]

    @property
    def macro(self) -> dict[str, Macro]:
        """Averages over the groups of the SAGE paper."""
        return macro_averages(self.benchmarks)

    def as_json(self) -> dict[str, Any]:
        """The content of ``results.json``."""
        return {
            "format": FORMAT,
            "model": self.model,
            "sampling": self.sampling,
            "num_samples": self.num_samples,
            "benchmarks": {
                name: {**summary.as_json(), _CLOCK: self.wall_s[name]}
                for name, summary in self.benchmarks.items()
            },
            "macro": {name: macro.as_json() for name, macro in self.macro.items()},
        }

    def table(self) -> list[str]:
        """Markdown lines, as ``table.md`` holds them."""
        return evaluation_table(self.benchmarks, self.macro, self.wall_s)


def write_results(
    folder: str | Path,
    ids: Mapping[str, Collection[str]],
    *,
    model: str,
    sampling: Mapping[str, Any],
    num_samples: int,
    wall_s: Mapping[str, float],
) -> Results:
    """Compute everything from the sample files; write ``results.json`` and ``table.md``.

    Args:
        folder: ``RUN/evaluation``.
        ids: Benchmark -> ids of its problems, in the order of the table.
        model: What was evaluated.
        sampling: What the samples were drawn with, as plain JSON values.
        num_samples: K.
        wall_s: Benchmark -> seconds that the clock showed, all sittings together.

    Raises:
        DataError: A line cannot be read, or a (problem, sample) pair is missing, repeated or
            unknown. Nothing is written then.
    """
    samples = read_samples(folder)
    if extra := sorted(samples.keys() - ids.keys()):
        raise DataError(
            f"{folder} holds samples of {', '.join(extra)}, expected only {', '.join(ids)}; give "
            f"another trainer.experiment_name for another set of benchmarks"
        )
    summaries = {}
    for name, names in ids.items():
        found = samples.pop(name, [])
        groups = complete_groups(found, num_samples, benchmark=name, ids=names)
        summaries[name] = summarise(groups, num_samples)
    clock = {name: float(wall_s[name]) for name in summaries}
    results = Results(model, dict(sampling), num_samples, summaries, clock)
    write_whole(Path(folder) / _TABLE, "\n".join(results.table()) + "\n")
    text = json.dumps(results.as_json(), indent=1, allow_nan=False) + "\n"
    # Last: whoever finds it finds the table too.
    write_whole(Path(folder) / _RESULTS, text)
    return results


def read_results(folder: str | Path) -> dict[str, Any]:
    """The content of ``RUN/evaluation/results.json``.

    Raises:
        DataError: The evaluation is not finished, or the file is of another format.
    """
    path = Path(folder) / _RESULTS
    if not path.exists():
        raise DataError(
            f"{path} is missing: the evaluation is not finished, or this is another kind of run; "
            f"start it again with the same trainer.experiment_name to finish it"
        )
    try:
        stored = read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not JSON ({error}); start the evaluation again") from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or not _is_sound(stored):
        raise DataError(f"{path} is not of format {FORMAT}; start the evaluation again")
    return stored


def _is_sound(stored: Mapping[str, Any]) -> bool:
    """Whether what a report reads is there and of its type."""
    match stored:
        case {
            "model": str(),
            "sampling": dict(),
            "num_samples": int() as num_samples,
            "benchmarks": dict() as benchmarks,
            "macro": dict(),
        }:
            names = (_CLOCK, "undecided")
            return num_samples > 0 and all(
                isinstance(each, dict) and all(is_number(each.get(name)) for name in names)
                for each in benchmarks.values()
            )
    return False


def read_groups(folder: str | Path, num_samples: int) -> dict[str, Groups]:
    """Benchmark -> its samples by problem, each problem with all K.

    Raises:
        DataError: A line cannot be read, or a sample is missing or repeated.
    """
    return {
        name: complete_groups(samples, num_samples, benchmark=name)
        for name, samples in read_samples(folder).items()
    }


def recompute(folder: str | Path) -> tuple[Results, list[str]]:
    """Every number again, from the sample files alone.

    Wall times are the clock's and are taken over.

    Args:
        folder: ``RUN/evaluation`` of a finished run.

    Returns:
        The results, and one line for each number of ``results.json`` or line of ``table.md``
        that differs; none when all are equal (floats to a relative 1e-9).

    Raises:
        DataError: A file is missing or cannot be read.
    """
    stored = read_results(folder)
    groups = read_groups(folder, stored["num_samples"])
    order = [*stored["benchmarks"], *sorted(groups.keys() - stored["benchmarks"].keys())]
    summaries = {n: summarise(groups[n], stored["num_samples"]) for n in order if n in groups}
    clock = {name: stored["benchmarks"].get(name, {}).get(_CLOCK, 0.0) for name in summaries}
    results = Results(stored["model"], stored["sampling"], stored["num_samples"], summaries, clock)
    lines = list(_differences("", stored, results.as_json()))
    table = Path(folder) / _TABLE
    shown = table.read_bytes().decode("utf-8", "replace") if table.is_file() else ""
    if not lines and shown.splitlines() != results.table():
        lines.append(f"{_TABLE} does not show the numbers of {_RESULTS}")
    return results, lines


def _differences(place: str, stored: Any, computed: Any) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in [*stored, *(key for key in computed if key not in stored)]:
            inner = f"{place}.{key}" if place else key
            yield from _differences(inner, stored.get(key), computed.get(key))
    elif not _is_equal(stored, computed):
        yield f"{place}: stored {_shown(stored)}, from the samples {_shown(computed)}"


def _is_equal(stored: Any, computed: Any) -> bool:
    if isinstance(stored, float) and isinstance(computed, int | float):
        return math.isclose(stored, computed, rel_tol=_RELATIVE, abs_tol=1e-12)
    return stored == computed


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.80}"
