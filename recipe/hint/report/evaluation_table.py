"""Markdown tables of an evaluation and of two side by side; shares in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recipe.hint.evaluation.paired import Comparison
from recipe.hint.evaluation.summary import Macro, Summary

_GROUPS = {
    "in_distribution": "in-distribution average",
    "out_of_distribution": "out-of-distribution average",
}


def evaluation_table(
    benchmarks: Mapping[str, Summary], macro: Mapping[str, Macro], wall_s: Mapping[str, float]
) -> list[str]:
    """One line per benchmark, one per complete group, and a sentence per incomplete one.

    Args:
        benchmarks: At least one; all with the same K.
        macro: The groups.
        wall_s: Benchmark -> seconds.
    """
    first = next(iter(benchmarks.values()))
    budgets = [k for k in first.pass_at if k > 1]  # pass@1 is avg
    head = [
        "benchmark",
        "problems",
        f"avg@{first.num_samples}",
        "95 %",
        *(f"pass@{k}" for k in budgets),
        f"maj@{first.num_samples}",
        "truncated",
        "no answer",
        "timeouts",
        "errors",
        "tokens",
        "minutes",
    ]
    rows = []
    for name, summary in benchmarks.items():
        counts = [str(summary.num_timeouts), str(summary.num_errors)]
        numbers = _numbers(summary.numbers(), budgets, counts)
        rows.append([name, str(summary.num_problems), *numbers, f"{wall_s[name] / 60:.1f}"])
    for name, group in macro.items():
        if not group.missing:
            numbers = _numbers(group.numbers, budgets, ["", ""])
            rows.append([_GROUPS[name], str(group.num_problems), *numbers, ""])
    lines = _markdown(head, rows)
    notes = [_failed(name, summary) for name, summary in benchmarks.items() if summary.undecided]
    notes += [_gap(name, group) for name, group in macro.items() if group.missing]
    return [*lines, "", *notes] if notes else lines


def comparison_table(
    names: tuple[str, str], comparisons: Mapping[str, Comparison], macro: Mapping[str, Comparison]
) -> list[str]:
    """Second run minus first, in points of a percent, one line per benchmark and group."""
    head = ["benchmark", "problems", *names, "difference", "95 %", "gained", "lost"]
    labelled = {**comparisons, **{_GROUPS[name]: each for name, each in macro.items()}}
    rows = [
        [
            name,
            str(each.num_problems),
            _percent(each.first),
            _percent(each.second),
            f"{100 * each.difference.value:+.1f}",
            f"{100 * each.difference.low:+.1f} to {100 * each.difference.high:+.1f}",
            str(each.num_gained),
            str(each.num_lost),
        ]
        for name, each in labelled.items()
    ]
    return _markdown(head, rows)


def _numbers(
    numbers: Mapping[str, float], budgets: Sequence[int], counts: Sequence[str]
) -> list[str]:
    return [
        _percent(numbers["avg"]),
        f"{_percent(numbers['avg_low'])} - {_percent(numbers['avg_high'])}",
        *(_percent(numbers[f"pass@{k}"]) for k in budgets),
        _percent(numbers["maj"]),
        _percent(numbers["truncated"]),
        _percent(numbers["no_answer"]),
        *counts,
        f"{numbers['response_tokens']:.0f}",
    ]


def _failed(name: str, summary: Summary) -> str:
    most = summary.avg.value + summary.undecided
    return (
        f"{name}: the verifier failed on {_percent(summary.undecided)} % of the samples; these "
        f"count as 0, and avg@{summary.num_samples} would be {_percent(most)} if all were right."
    )


def _gap(name: str, group: Macro) -> str:
    return f"No {_GROUPS[name]}: missing {', '.join(group.missing)}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns padded, so that the table can be read on a console; text left, numbers right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    cells = [
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in (head, *rows)
    ]
    return [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]
