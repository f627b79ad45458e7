"""All numbers of a benchmark, and the macro averages over the groups of the SAGE paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recipe.hint.evaluation.estimators import (
    Estimate,
    clustered_mean,
    majority_score,
    mean_of,
    pass_at_k,
)
from recipe.hint.evaluation.samples import Groups, Sample

# Liao et al. 2026, arXiv:2602.03143.
PAPER_GROUPS: dict[str, tuple[str, ...]] = {
    "in_distribution": ("aime24", "aime25", "amc23", "math500", "minerva", "olympiadbench"),
    "out_of_distribution": ("gpqa_diamond", "mmlu_pro"),
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of one benchmark of P problems with K samples each.

    Shares are of all P * K samples and in [0, 1]. A sample that the verifier failed on counts as
    0 in ``avg``, ``pass_at`` and ``maj``; ``undecided`` is its share, so ``avg + undecided`` is
    what ``avg`` could be at most.
    """

    num_problems: int
    num_samples: int
    avg: Estimate
    pass_at: dict[int, float]
    maj: float
    truncated: float
    no_answer: float
    undecided: float
    num_timeouts: int
    num_errors: int
    response_tokens: float
    reasons: dict[str, int]

    def numbers(self) -> dict[str, float]:
        """Those that may be averaged over benchmarks."""
        return {
            "avg": self.avg.value,
            "avg_low": self.avg.low,
            "avg_high": self.avg.high,
            **{f"pass@{k}": value for k, value in self.pass_at.items()},
            "maj": self.maj,
            "truncated": self.truncated,
            "no_answer": self.no_answer,
            "undecided": self.undecided,
            "response_tokens": self.response_tokens,
        }

    def as_json(self) -> dict[str, object]:
        """Every number, under the names of ``results.json``."""
        return {
            "problems": self.num_problems,
            "samples": self.num_problems * self.num_samples,
            **self.numbers(),
            "timeouts": self.num_timeouts,
            "errors": self.num_errors,
            "reasons": self.reasons,
        }


@dataclass(frozen=True, slots=True)
class Macro:
    """Unweighted means over the benchmarks of a group; ``numbers`` is empty while one misses.

    ``missing`` names each member that no benchmark, or more than one, stands for.
    """

    members: dict[str, str]
    missing: tuple[str, ...]
    num_problems: int
    numbers: dict[str, float]

    def as_json(self) -> dict[str, object]:
        """The same under the names of ``results.json``; ``members`` maps to the benchmarks."""
        return {
            "members": self.members,
            "missing": list(self.missing),
            "problems": self.num_problems,
            **self.numbers,
        }


def budgets(num_samples: int) -> list[int]:
    """The k of pass@k that are reported: powers of two below K, and K."""
    powers = [2**power for power in range(num_samples.bit_length())]
    return sorted({k for k in powers if k < num_samples} | {num_samples})


def problem_means(groups: Groups) -> dict[str, float]:
    """Mean score of each problem's samples."""
    return {name: _num_correct(group) / len(group) for name, group in groups.items()}


def summarise(groups: Groups, num_samples: int) -> Summary:
    """Every number of a benchmark.

    Args:
        groups: What :func:`recipe.hint.evaluation.samples.complete_groups` returns.
        num_samples: K.

    Raises:
        ValueError: If there are no problems.
    """
    reasons = Counter(sample.reason for group in groups.values() for sample in group)
    total = sum(reasons.values())
    samples = [sample for group in groups.values() for sample in group]
    correct_P = [_num_correct(group) for group in groups.values()]
    return Summary(
        num_problems=len(groups),
        num_samples=num_samples,
        avg=clustered_mean(list(problem_means(groups).values()), num_samples),
        pass_at={k: _mean_pass_at(k, num_samples, correct_P) for k in budgets(num_samples)},
        maj=float(np.mean([_majority(group) for group in groups.values()])),
        truncated=sum(sample.is_truncated for sample in samples) / total,
        no_answer=sum(sample.has_no_answer for sample in samples) / total,
        undecided=sum(sample.is_ungraded for sample in samples) / total,
        num_timeouts=reasons["timeout"],
        num_errors=reasons["error"],
        response_tokens=sum(sample.response_tokens for sample in samples) / total,
        reasons=dict(sorted(reasons.items())),
    )


def macro_averages(summaries: Mapping[str, Summary]) -> dict[str, Macro]:
    """One entry per group of :data:`PAPER_GROUPS`, complete or not; all summaries have one K."""
    groups = assign_members(summaries)
    return {name: _macro(members, summaries) for name, members in groups.items()}


def assign_members(benchmarks: Sequence[str] | Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Per group, member -> the benchmark that stands for it; empty when none or several do.

    Names are compared without case, punctuation and what comes before a slash: ``MATH-500`` and
    ``org/math_500`` are ``math500``.
    """
    found: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        found.setdefault(_plain(benchmark), []).append(benchmark)
    return {
        group: {
            member: here[0] if len(here := found.get(_plain(member), [])) == 1 else ""
            for member in members
        }
        for group, members in PAPER_GROUPS.items()
    }


def _macro(members: dict[str, str], summaries: Mapping[str, Summary]) -> Macro:
    present = {member: name for member, name in members.items() if name}
    missing = tuple(member for member, name in members.items() if not name)
    parts = [summaries[name] for name in present.values()]
    numbers: dict[str, float] = {}
    if not missing:
        rows = [part.numbers() for part in parts]
        numbers = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
        _, numbers["avg_low"], numbers["avg_high"] = mean_of([part.avg for part in parts])
    return Macro(present, missing, sum(part.num_problems for part in parts), numbers)


def _mean_pass_at(k: int, num_samples: int, correct_P: Sequence[int]) -> float:
    by_count = [pass_at_k(num_samples, correct, k) for correct in range(num_samples + 1)]
    return float(np.mean([by_count[correct] for correct in correct_P]))


def _majority(group: tuple[Sample, ...]) -> float:
    keys_K = [sample.answer_key for sample in group]
    return majority_score(keys_K, [float(sample.is_correct) for sample in group])


def _num_correct(group: tuple[Sample, ...]) -> int:
    return sum(sample.is_correct for sample in group)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.rsplit("/", 1)[-1].casefold()))
