"""One judged answer to one problem, and the check that a benchmark has all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from recipe.hint.errors import DataError
from recipe.hint.schema import UNGRADED, Reason
from recipe.hint.verify.maths.reading import vote_key

# Reasons of an answer that was read and judged; all others say why there is nothing to compare.
_JUDGED = frozenset({"correct", "wrong"})
_REASONS = frozenset(get_args(Reason))
_SHOWN = 3  # problems that a message lists
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "Reason": (str,),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a sample file, without the response: a large benchmark has gigabytes of them.

    ``sample`` is 0..K-1; ``score`` is 1.0 exactly when ``reason`` is ``correct``, else 0.0.
    """

    benchmark: str
    id: str
    sample: int
    seed: int
    score: float
    reason: Reason
    extracted: str
    prompt_tokens: int
    response_tokens: int
    is_truncated: bool
    seconds: float

    @property
    def is_correct(self) -> bool:
        """Judged, and equal to the gold answer."""
        return self.reason == "correct"

    @property
    def is_ungraded(self) -> bool:
        """True when the verifier failed, so the answer may be right or wrong."""
        return self.reason in UNGRADED

    @property
    def has_no_answer(self) -> bool:
        """True when no final answer could be read from the response."""
        return self.reason not in _JUDGED | UNGRADED

    @property
    def answer_key(self) -> str:
        r"""What equal answers share, for a vote; empty when there is no judged answer.

        Numbers by value (``0.5`` and ``\frac{1}{2}``), all else by its tokens.
        """
        if self.reason not in _JUDGED:
            return ""
        return vote_key(self.extracted)

    @classmethod
    def from_json(cls, row: Any) -> Sample:
        """One parsed line; fields that are not known are left out.

        Raises:
            DataError: Naming the field that is missing, has another type or contradicts another.
        """
        if not isinstance(row, dict):
            raise DataError(f"a sample is a JSON object, got {type(row).__name__}")
        values = {field.name: _value(row, field.name, str(field.type)) for field in fields(cls)}
        if values["reason"] not in _REASONS:
            known = ", ".join(sorted(_REASONS))
            raise DataError(f"reason={values['reason']!r} is none of {known}")
        if values["score"] != float(values["reason"] == "correct"):
            raise DataError(
                f"score={values['score']} and reason={values['reason']!r} contradict each other; "
                f"the score is 1 when the reason is `correct`, else 0"
            )
        return cls(**values)


def _value(row: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in row:
        raise DataError(f"the field `{name}` is missing")
    value, types = row[name], _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise DataError(f"the field `{name}` holds {value!r:.60}; it must be a {kind}")
    return value


# Problem id -> its K samples, both in order, so that equal samples give equal floats.
Groups = dict[str, tuple[Sample, ...]]


def complete_groups(
    samples: Iterable[Sample],
    num_samples: int,
    *,
    benchmark: str,
    ids: Collection[str] = (),
) -> Groups:
    """The samples of a benchmark by problem, each problem with samples 0..K-1 exactly once.

    Args:
        samples: In any order.
        num_samples: K.
        benchmark: Its name, for messages.
        ids: The problems that there must be; when empty, those that have a sample.

    Raises:
        DataError: Nothing is there, or a (problem, sample) pair is missing, repeated or unknown.
    """
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.id].append(sample)
    if not found:
        raise DataError(f"{benchmark}: no samples, so nothing to report; evaluate it first")
    wanted = set(ids) or set(found)
    _refuse(benchmark, "problems that are not in the benchmark", sorted(found.keys() - wanted))
    expected = Counter(range(num_samples))
    have = {name: Counter(sample.sample for sample in found[name]) for name in sorted(wanted)}
    _refuse(
        benchmark,
        "samples that are there twice or beyond the expected number",
        [name for name, counts in have.items() if counts - expected],
    )
    _refuse(
        benchmark,
        "samples that are missing (start the evaluation again to draw them)",
        [name for name, counts in have.items() if expected - counts],
    )
    return {name: tuple(sorted(found[name], key=lambda each: each.sample)) for name in have}


def _refuse(benchmark: str, what: str, names: list[str]) -> None:
    if names:
        shown = ", ".join(map(repr, names[:_SHOWN])) + (" ..." if len(names) > _SHOWN else "")
        raise DataError(f"{benchmark}: {what}: {len(names)} problems, such as {shown}")
