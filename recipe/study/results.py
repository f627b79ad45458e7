"""The graded responses of evaluations, and their numbers: written, computed again, compared.

Responses are lines of ``RUN/evaluation/samples/BENCHMARK.jsonl``, numbers are kept as
``results.json`` has them; docs/evaluation.md says what each name means.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from recipe.hint.estimators import (
    crossed_difference,
    crossed_share,
    majority_score,
    pass_at_k,
    turn_metrics,
)
from recipe.run.errors import DataError, reading
from recipe.run.whole_file import write_whole
from recipe.study.tables import markdown, percent
from recipe.verify.maths.reading import vote_key
from recipe.verify.schema import UNGRADED, Reason

# Of a benchmark alone; all other numbers have a mean over benchmarks too.
_NOT_AVERAGED = ["avg_low", "avg_high", "samples", "timeouts", "errors", "reasons", "turns"]
FORMAT = 2
_RESULTS, SETTINGS = "results.json", "settings.json"
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")
_TURN_SHARES = ("wrong_to_right", "right_to_wrong", "unchanged")
_SOLVED = 0.5  # a run solves a problem when at least this share of its responses is correct
_OF_THE_MODEL = {"model", "weights", "num_samples"}

# Reasons of an answer that was read and graded; all others say why there is nothing to compare.
GRADED = frozenset({"correct", "wrong", "too_slow", "unsupported"})


@dataclass(frozen=True, slots=True, config=ConfigDict(strict=True, allow_inf_nan=False))
class GradedResponse:
    """One line of a response file, without the text: a large benchmark has gigabytes of them.

    ``sample`` is the response's number, 0..K-1; ``facts`` are those of the conversation with
    several turns that it ends (``Conversation.facts``), if they are known.
    """

    benchmark: str
    id: str
    sample: int
    score: float
    reason: Reason
    extracted: str
    response_tokens: int
    is_truncated: bool
    facts: dict[str, float] | None = None

    @property
    def is_correct(self) -> bool:
        """Graded, and equal to the gold answer."""
        return self.reason == "correct"

    @property
    def answer_key(self) -> str:
        r"""What equal answers share, for a vote: ``0.5`` and ``\frac{1}{2}``; else empty."""
        return vote_key(self.extracted) if self.reason in GRADED else ""


_ADAPTER = TypeAdapter(GradedResponse)
# Problem id -> its K responses, both in order, so that equal responses give equal floats.
Groups = dict[str, tuple[GradedResponse, ...]]


def read_kept(folder: Path) -> dict[str, Any]:
    """Return ``settings.json``, what an evaluation drew with; empty without."""
    path = folder / SETTINGS
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def response_path(folder: Path, benchmark: str) -> Path:
    """Return the file of a benchmark's responses; its name may hold a slash (``tiny/hard``)."""
    return folder / "samples" / f"{benchmark.replace('/', '__')}.jsonl"


def read_responses(folder: Path) -> dict[str, list[GradedResponse]]:
    """Read all responses below ``RUN/evaluation``, by benchmark; the texts are dropped.

    A last line without its end, which a kill leaves, is none.
    """
    responses: defaultdict[str, list[GradedResponse]] = defaultdict(list)
    for path in sorted((folder / "samples").glob("*.jsonl")):
        with open(path, "rb") as lines, reading(path):
            for line in lines:
                if line.endswith(b"\n"):
                    response = _ADAPTER.validate_json(line)
                    responses[response.benchmark].append(response)
    return dict(responses)


def complete_groups(
    responses: Iterable[GradedResponse], num_responses: int, ids: Collection[str] = ()
) -> Groups:
    """Group a benchmark's responses by problem, ``ids`` among them.

    Raises:
        DataError: A problem does not have the responses 0..K-1 exactly once.
    """
    found: dict[str, list[GradedResponse]] = {name: [] for name in ids}
    for response in sorted(responses, key=lambda each: each.sample):
        found.setdefault(response.id, []).append(response)
    for name, group in found.items():
        if [each.sample for each in group] != list(range(num_responses)):
            raise DataError(
                f"problem {name!r} does not have the responses 0 to {num_responses - 1} once each; "
                f"the same command draws missing ones, another trainer.experiment_name starts a "
                f"new evaluation"
            )
    return {name: tuple(found[name]) for name in sorted(found)}


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
    avg = crossed_share([correct / num_responses for correct in correct_P], num_responses)
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
    return sorted({2**power for power in range((num_responses - 1).bit_length())} | {num_responses})


def macro_average(benchmarks: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the unweighted mean over several benchmarks of all but ``problems``, their number."""
    if len(benchmarks) < 2:
        return {}
    shares: Any = pd.DataFrame([*benchmarks.values()]).drop(columns=_NOT_AVERAGED, errors="ignore")
    return shares.mean().to_dict() | {"problems": int(shares["problems"].sum())}


def write_results(
    folder: Path, ids: Mapping[str, Collection[str]], settings: Mapping[str, Any]
) -> None:
    """Compute everything from the response files; write ``results.json`` and ``table.md``.

    ``folder`` is ``RUN/evaluation``; ``ids`` are those of each benchmark's problems, in the order
    of the table; with ``settings`` the responses were drawn (``evaluation_settings``).

    Raises:
        DataError: A response is missing or repeated. Nothing is written then.
    """
    responses, num_responses = read_responses(folder), settings["num_samples"]
    groups = {
        name: complete_groups(responses.get(name, ()), num_responses, of_name)
        for name, of_name in ids.items()
    }
    sampling = {name: settings[name] for name in _SAMPLING if name in settings}
    head = {"model": settings["model"], "sampling": sampling, "num_samples": num_responses}
    results = _results(head, groups)
    write_whole(folder / "table.md", "\n".join(evaluation_table(results)) + "\n")
    # Last: if it exists, so does the table.
    write_whole(folder / _RESULTS, json.dumps(results, indent=1, allow_nan=False) + "\n")


def _results(head: Mapping[str, Any], groups: Mapping[str, Groups]) -> dict[str, Any]:
    summaries = {name: summarise(each, head["num_samples"]) for name, each in groups.items()}
    kept = {name: head[name] for name in ("model", "sampling", "num_samples")}
    macro = macro_average(summaries)
    return {"format": FORMAT, **kept, "benchmarks": summaries, "macro": macro}


def read_evaluation(folder: str | Path) -> tuple[dict[str, Any], dict[str, Groups]]:
    """Read an evaluation's results, and each benchmark's responses by problem.

    Raises:
        DataError: If it is not finished, or a response is missing or repeated.
    """
    path = Path(folder) / _RESULTS
    if not path.exists():
        raise DataError(
            f"{path} is missing: no finished evaluation is there; evaluate with "
            f"trainer.eval_only=true, or start the same evaluation again to finish it"
        )
    responses = read_responses(path.parent)
    with reading(path):
        stored = json.loads(path.read_bytes())
        num_responses, groups = stored["num_samples"], dict[str, Groups]()
        for name, of_name in stored["benchmarks"].items():
            groups[name] = complete_groups(responses.get(name, ()), num_responses)
            if len(groups[name]) != of_name["problems"]:
                told = f"{len(groups[name])} problems have responses, of {of_name['problems']}"
                raise DataError(f"{response_path(path.parent, name)}: {told}")
    return stored, groups


def recomputed(folder: str | Path) -> dict[str, Any]:
    """Return what ``results.json`` of a finished evaluation should have, from its responses."""
    return _results(*read_evaluation(folder))


def evaluation_table(results: Mapping[str, Any]) -> list[str]:
    """Return the lines of ``table.md``: benchmarks, their mean, what to know about them."""
    num_responses, benchmarks, macro = (results[n] for n in ("num_samples", "benchmarks", "macro"))
    avg = f"avg@{num_responses}"
    shown_k = [f"pass@{k}" for k in budgets(num_responses) if k > 1]  # pass@1 is avg
    head = ["benchmark", "problems", avg, "95 %", *shown_k, f"maj@{num_responses}", "truncated"]
    head += ["no answer", "timeouts", "errors", "tokens"]
    mean = {f"mean of {len(benchmarks)}": macro} if macro else {}
    rows = [
        [
            name,
            str(each["problems"]),
            percent(each["avg"]),
            " - ".join(percent(each[end]) for end in ("avg_low", "avg_high") if end in each),
            *(percent(each[share]) for share in (*shown_k, "maj", "truncated", "no_answer")),
            *(str(each.get(count, "")) for count in ("timeouts", "errors")),
            f"{each['response_tokens']:.0f}",
        ]
        for name, each in {**benchmarks, **mean}.items()
    ]
    notes = [
        f"{name}: the verifier failed on {percent(each['undecided'])} % of the samples; these "
        f"count as 0, and {avg} would be {percent(each['avg'] + each['undecided'])} if all were "
        f"right."
        for name, each in benchmarks.items()
        if each["undecided"]
    ]
    parts = [markdown(head, rows), _turns_table(benchmarks), notes]
    return [line for part in parts if part for line in ("", *part)][1:]


def _turns_table(benchmarks: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return what a further turn changed, of the conversations that the verifier could compare."""
    head = ["benchmark", "compared", "first turn", "last turn", "change", "95 %"]
    head += [share.replace("_", " ") for share in _TURN_SHARES]
    rows = [
        [
            name,
            f"{each['conversations']:.0f}",
            *(percent(each[turn]) for turn in ("acc_t1", "acc_t2")),
            percent(each["delta"], sign=True),
            " to ".join(percent(each[f"delta_{end}"], sign=True) for end in ("low", "high")),
            *(percent(each[share]) for share in _TURN_SHARES),
        ]
        for name, each in ((name, of["turns"]) for name, of in benchmarks.items() if "turns" in of)
    ]
    return markdown(head, rows) if rows else []


def compare_runs(first: Path, second: Path) -> list[str]:
    """Return a table of second minus first over the problems of both, and what to know about it.

    Problems are paired; K may differ. ``gained`` are solved by the second run and not by the first
    (at least half of the responses are correct), ``lost`` the other way round.

    Raises:
        DataError: A run is not finished, or they share no problem.
    """
    folders = [Path(each) / "evaluation" for each in (first, second)]
    (a, groups_a), (b, groups_b) = map(read_evaluation, folders)
    rows, notes = [], []
    for name in filter(groups_b.get, groups_a):
        means = [
            {id_: fmean(each.is_correct for each in found) for id_, found in groups[name].items()}
            for groups in (groups_a, groups_b)
        ]
        common = sorted(means[0].keys() & means[1].keys())
        if alone := len(means[0].keys() ^ means[1].keys()):
            notes.append(f"{name}: {alone} problems that only one run has are left out")
        if not common:
            continue
        old_P, new_P = np.array([[of[each] for each in common] for of in means])
        change = crossed_difference(new_P - old_P)
        rows.append(
            [
                name,
                str(len(common)),
                *(percent(float(each_P.mean())) for each_P in (old_P, new_P)),
                percent(change.value, sign=True),
                " to ".join(percent(end, sign=True) for end in change[1:]),
                str(((new_P >= _SOLVED) & (old_P < _SOLVED)).sum()),
                str(((new_P < _SOLVED) & (old_P >= _SOLVED)).sum()),
            ]
        )
        for letter, run in (("A", a), ("B", b)):
            if share := run["benchmarks"][name]["undecided"]:
                failed = f"{name}: the verifier failed on {percent(share)} % of {letter}'s samples"
                notes.append(f"{failed}, counted as 0")
    if not rows:
        raise DataError(
            f"no problem in common: {first} has {', '.join(groups_a)}, {second} has "
            f"{', '.join(groups_b)}; evaluate both on the same files"
        )
    if alone := groups_a.keys() ^ groups_b.keys():
        notes.append(f"in one run only: {', '.join(sorted(alone))}")
    old, new = (
        run["sampling"] | read_kept(folder) for run, folder in zip((a, b), folders, strict=True)
    )
    notes += [  # beside the model: there the comparison is of both together
        f"{name} is not the same: {old.get(name)} in A, {new.get(name)} in B"
        for name in {**old, **new}
        if old.get(name) != new.get(name) and name not in _OF_THE_MODEL
    ]
    head = ["benchmark", "problems", f"A avg@{a['num_samples']}", f"B avg@{b['num_samples']}"]
    table = markdown([*head, "B - A", "95 %", "gained", "lost"], rows)
    models = [f"A: {first}: {a['model']}", f"B: {second}: {b['model']}", ""]
    return [*models, *table, *([""] if notes else []), *notes]
