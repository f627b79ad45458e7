"""The sample files of an evaluation, read for its results: nothing half-written is accepted."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from recipe.hint.errors import DataError
from recipe.hint.evaluation.samples import Sample
from recipe.hint.typed import read_json


def read_samples(folder: str | Path) -> dict[str, list[Sample]]:
    """Benchmark -> its samples in the order of the file, from ``FOLDER/samples/*.jsonl``.

    Responses are read and dropped one by one, so memory grows with the number of samples only.

    Args:
        folder: ``RUN/evaluation``.

    Raises:
        DataError: There are no files, or a line is not a sample; names file and line.
    """
    paths = sorted((Path(folder) / "samples").glob("*.jsonl"))
    if not paths:
        raise DataError(
            f"{folder} holds no samples/*.jsonl; it is written by a run with trainer.eval_only=true"
        )
    samples: defaultdict[str, list[Sample]] = defaultdict(list)
    for path in paths:
        try:
            with open(path, "rb") as lines:
                for number, line in enumerate(lines, 1):
                    sample = _sample(path, number, line)
                    samples[sample.benchmark].append(sample)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return dict(samples)


def _sample(path: Path, number: int, line: bytes) -> Sample:
    if not line.endswith(b"\n"):
        raise DataError(
            f"{path}: line {number} is cut off, as a killed run leaves it; start the evaluation "
            f"again, it takes the line off and draws the sample anew"
        )
    try:
        return Sample.from_json(read_json(line))
    except ValueError as error:
        raise DataError(f"{path}: line {number} is not a sample: {error}") from error
