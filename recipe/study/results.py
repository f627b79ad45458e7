"""The numbers of an evaluation: computed from its responses, written, printed, computed again.

They are kept as ``results.json`` has them; docs/evaluation.md says what each name means.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recipe.run.errors import DataError
from recipe.run.whole_file import write_whole
from recipe.study.estimators import (
    Estimate,
    clustered_mean,
    majority_score,
    mean_of,
    pass_at_k,
    turn_metrics,
)
from recipe.study.responses import GRADED, Groups, complete_groups, read_responses
from recipe.study.tables import markdown, percent
from recipe.verify.schema import UNGRADED

# Liao et al. 2026, arXiv:2602.03143.
PAPER_GROUPS: dict[str, tuple[str, ...]] = {
    "in_distribution": ("aime24", "aime25", "amc23", "math500", "minerva", "olympiadbench"),
    "out_of_distribution": ("gpqa_diamond", "mmlu_pro"),
}
GROUP_TITLES = {
    "in_distribution": "in-distribution average",
    "out_of_distribution": "out-of-distribution average",
}
_NOT_AVERAGED = {"problems", "samples", "timeouts", "errors", "reasons", "wall_s", "turns"}
FORMAT = 1
_RESULTS, _TABLE = "results.json", "table.md"
# The last digit of a sum of floats may differ between processors.
_RELATIVE = 1e-9


def summarise(groups: Groups, num_responses: int) -> dict[str, Any]:
    """Compute every number of a benchmark of P problems with K responses each.

    Shares are of all P * K responses and in [0, 1]. A response that the verifier failed on counts
    as 0 in ``avg``, ``pass@k`` and ``maj``; ``undecided`` is the share of these, so that ``avg +
    undecided`` is what ``avg`` could be at most.
    """
    responses = [each for group in groups.values() for each in group]
    total = len(responses)
    reasons = Counter(each.reason for each in responses)
    no_answer = sum(reasons[reason] for reason in reasons.keys() - GRADED - UNGRADED)
    correct_P = [sum(each.is_correct for each in group) for group in groups.values()]
    avg = clustered_mean([correct / num_responses for correct in correct_P], num_responses)
    majority_P = [
        majority_score([each.answer_key for each in group], [each.score for each in group])
        for group in groups.values()
    ]
    pass_at = {
        f"pass@{k}": float(np.mean([pass_at_k(num_responses, correct, k) for correct in correct_P]))
        for k in budgets(num_responses)
    }
    facts_P = {name: [each.facts for each in group if each.facts] for name, group in groups.items()}
    turns = turn_metrics(facts_P)
    return {
        "problems": len(groups),
        "samples": total,
        **{"avg": avg.value, "avg_low": avg.low, "avg_high": avg.high},
        **pass_at,
        "maj": float(np.mean(majority_P)),
        "truncated": sum(each.is_truncated for each in responses) / total,
        "no_answer": no_answer / total,
        "undecided": sum(reasons[reason] for reason in UNGRADED) / total,
        "response_tokens": sum(each.response_tokens for each in responses) / total,
        "timeouts": reasons["timeout"],
        "errors": reasons["error"],
        "reasons": dict(sorted(reasons.items())),
        **({"turns": turns} if turns else {}),
    }


def budgets(num_responses: int) -> list[int]:
    """Return the k of pass@k that are reported: powers of two below K, and K."""
    powers = [2**power for power in range(num_responses.bit_length())]
    return sorted({k for k in powers if k < num_responses} | {num_responses})


def macro_averages(benchmarks: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Average over the benchmarks of each group of :data:`PAPER_GROUPS`, unweighted.

    A group has ``members`` (member -> benchmark), ``missing`` (members that no benchmark, or more
    than one, stands for) and ``problems``; the averages only while nothing is missing.
    """
    result = {}
    for group, members in assign_members(benchmarks).items():
        parts = [benchmarks[name] for name in members.values()]
        missing = [member for member in PAPER_GROUPS[group] if member not in members]
        problems = sum(part["problems"] for part in parts)
        result[group] = {"members": members, "missing": missing, "problems": problems}
        if not missing:
            for key in parts[0].keys() - _NOT_AVERAGED:
                result[group][key] = sum(part[key] for part in parts) / len(parts)
            ends = [Estimate(part["avg"], part["avg_low"], part["avg_high"]) for part in parts]
            _, result[group]["avg_low"], result[group]["avg_high"] = mean_of(ends)
    return result


def assign_members(benchmarks: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return per group, member -> the one benchmark that stands for it, if one does.

    Names are compared without case, punctuation and what comes before a slash: ``MATH-500`` and
    ``org/math_500`` are ``math500``.
    """

    def plain(name: str) -> str:
        return "".join(filter(str.isalnum, name.rsplit("/", 1)[-1].casefold()))

    found: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        found.setdefault(plain(benchmark), []).append(benchmark)
    return {
        group: {
            each: found[plain(each)][0] for each in members if len(found.get(plain(each), ())) == 1
        }
        for group, members in PAPER_GROUPS.items()
    }


def write_results(
    folder: str | Path,
    ids: Mapping[str, Collection[str]],
    *,
    model: str,
    sampling: Mapping[str, Any],
    num_responses: int,
    wall_s: Mapping[str, float],
) -> dict[str, Any]:
    """Compute everything from the response files; write ``results.json`` and ``table.md``.

    Args:
        folder: ``RUN/evaluation``.
        ids: Benchmark -> ids of its problems, in the order of the table.
        model: What was evaluated.
        sampling: What the responses were drawn with, as plain JSON values.
        num_responses: K.
        wall_s: Benchmark -> seconds that the clock showed, all sessions together.

    Raises:
        DataError: A response is missing, repeated or unknown. Nothing is written then.
    """
    responses = read_responses(folder)
    if extra := sorted(responses.keys() - ids.keys()):
        raise DataError(
            f"{folder} holds responses of {', '.join(extra)}, expected only {', '.join(ids)}; give "
            f"another trainer.experiment_name for another set of benchmarks"
        )
    groups = {
        name: complete_groups(responses.get(name, ()), num_responses, benchmark=name, ids=of_name)
        for name, of_name in ids.items()
    }
    head = {"model": model, "sampling": dict(sampling), "num_samples": num_responses}
    results = _results(head, groups, wall_s)
    write_whole(Path(folder) / _TABLE, "\n".join(evaluation_table(results)) + "\n")
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    # Last: if it exists, so does the table.
    write_whole(Path(folder) / _RESULTS, text)
    return results


def read_results(folder: str | Path) -> dict[str, Any]:
    """Read ``RUN/evaluation/results.json``.

    Raises:
        DataError: The evaluation is not finished, or the file is of another format.
    """
    path = Path(folder) / _RESULTS
    if not path.exists():
        raise DataError(
            f"{path} is missing: no finished evaluation is there; evaluate with "
            f"trainer.eval_only=true, or start the same evaluation again to finish it"
        )
    stored = json.loads(path.read_bytes())
    if stored["format"] != FORMAT:
        raise DataError(f"{path} is not of format {FORMAT}; start the evaluation again")
    return stored


def read_evaluation(folder: str | Path) -> tuple[dict[str, Any], dict[str, Groups]]:
    """Read an evaluation's results, and each benchmark's responses by problem.

    Raises:
        DataError: If it is not finished, or a response is missing or repeated.
    """
    stored, responses = read_results(folder), read_responses(folder)
    groups = {
        name: complete_groups(responses.get(name, ()), stored["num_samples"], benchmark=name)
        for name in {**stored["benchmarks"], **responses}
    }
    counts = {name: each["problems"] for name, each in stored["benchmarks"].items()}
    if (found := {name: len(each) for name, each in groups.items()}) != counts:
        raise DataError(f"{folder} has responses to {found} problems, {_RESULTS} counts {counts}")
    return stored, groups


def recompute(folder: str | Path) -> tuple[dict[str, Any], list[str]]:
    """Compute every number of a finished evaluation again, from the response files alone.

    Returns:
        The content that ``results.json`` should have (wall times are taken over), and one line for
        each number of it that differs, or for ``table.md``; none when all are equal.
    """
    stored, groups = read_evaluation(folder)
    wall_s = {name: each["wall_s"] for name, each in stored["benchmarks"].items()}
    results = _results(stored, groups, wall_s)
    lines = list(_differences("", stored, results))
    table = Path(folder) / _TABLE
    shown = table.read_text("utf-8") if table.is_file() else ""
    if not lines and shown.splitlines() != evaluation_table(results):
        lines.append(f"{_TABLE} does not show the numbers of {_RESULTS}")
    return results, lines


def _results(
    head: Mapping[str, Any], groups: Mapping[str, Groups], wall_s: Mapping[str, float]
) -> dict[str, Any]:
    num_responses = head["num_samples"]
    summaries = {
        name: summarise(each, num_responses) | {"wall_s": float(wall_s.get(name, 0.0))}
        for name, each in groups.items()
    }
    kept = {name: head[name] for name in ("model", "sampling", "num_samples")}
    macro = macro_averages(summaries)
    return {"format": FORMAT, **kept, "benchmarks": summaries, "macro": macro}


def _differences(place: str, stored: Any, computed: Any) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in {**stored, **computed}:
            inner = f"{place}.{key}" if place else key
            yield from _differences(inner, stored.get(key), computed.get(key))
        return
    is_equal = stored == computed
    if isinstance(stored, float) and isinstance(computed, int | float):
        is_equal = math.isclose(stored, computed, rel_tol=_RELATIVE, abs_tol=1e-12)
    if not is_equal:
        old, new = ("nothing" if each is None else f"{each!r:.80}" for each in (stored, computed))
        yield f"{place}: stored {old}, from the samples {new}"


def evaluation_table(results: Mapping[str, Any]) -> list[str]:
    """Return the lines of ``table.md``: benchmarks, complete groups, what to know about them."""
    num_responses, benchmarks, macro = (results[n] for n in ("num_samples", "benchmarks", "macro"))
    avg = f"avg@{num_responses}"
    shown_k = [f"pass@{k}" for k in budgets(num_responses) if k > 1]  # pass@1 is avg
    head = ["benchmark", "problems", avg, "95 %", *shown_k, f"maj@{num_responses}", "truncated"]
    head += ["no answer", "timeouts", "errors", "tokens", "minutes"]
    complete = {GROUP_TITLES[name]: each for name, each in macro.items() if not each["missing"]}
    rows = [
        [
            name,
            str(each["problems"]),
            percent(each["avg"]),
            f"{percent(each['avg_low'])} - {percent(each['avg_high'])}",
            *(percent(each[share]) for share in (*shown_k, "maj", "truncated", "no_answer")),
            *(str(each.get(count, "")) for count in ("timeouts", "errors")),
            f"{each['response_tokens']:.0f}",
            f"{each['wall_s'] / 60:.1f}" if "wall_s" in each else "",
        ]
        for name, each in {**benchmarks, **complete}.items()
    ]
    turns = {name: each["turns"] for name, each in benchmarks.items() if "turns" in each}
    notes = [
        f"{name}: the verifier failed on {percent(each['undecided'])} % of the samples; these "
        f"count as 0, and {avg} would be {percent(each['avg'] + each['undecided'])} if all were "
        f"right."
        for name, each in benchmarks.items()
        if each["undecided"]
    ]
    notes += [
        f"{name}: of {benchmarks[name]['samples']} conversations {unknown:.0f} are not compared: "
        f"the verifier failed on their first or last turn."
        for name, each in turns.items()
        if (unknown := benchmarks[name]["samples"] - each["conversations"])
    ]
    notes += [
        f"No {GROUP_TITLES[name]}: missing {', '.join(each['missing'])}."
        for name, each in macro.items()
        if each["missing"]
    ]
    parts = [markdown(head, rows), _turns_table(turns) if turns else [], notes]
    return [line for part in parts if part for line in ("", *part)][1:]


def _turns_table(turns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return what the later turns change, a line per benchmark."""
    shares = ("wrong_to_right", "right_to_wrong", "unchanged")
    head = ["benchmark", "first turn", "last turn", "change", "95 %"]
    head += [share.replace("_", " ") for share in shares]
    rows = [
        [
            name,
            *(percent(each[turn]) for turn in ("acc_t1", "acc_t2")),
            percent(each["delta"], sign=True),
            " to ".join(percent(each[f"delta_{end}"], sign=True) for end in ("low", "high")),
            *(percent(each[share]) for share in shares),
        ]
        for name, each in turns.items()
    ]
    return markdown(head, rows)
