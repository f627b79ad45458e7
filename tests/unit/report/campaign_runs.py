"""Folders of campaigns whose runs gave the verdicts that a test asks for."""

import json

import yaml
from response_rows import rows, turn_facts, write_rows

from recipe.study.campaign import read_campaign
from recipe.study.results import write_results

CONVERSATIONS = {"a": "-+ -+", "b": "-+ ++", "c": "-+ --"}  # changes 1, 1/2, 1/2
STEP = {"hint/prompts": 2, "hint/rollout_tokens": 500, "hint/tokens": 0}
ONE = {"a": "++++", "b": "++--", "c": "----"}  # 1, 1/2, 0


def write_campaign(root, arms, **changes):
    """``arms``: arm -> seed -> problem -> ``+`` and ``-``; for two turns a pair such as ``-+``."""
    node = {"title": "A campaign", "arms": {name: {} for name in arms}, "seeds": [1, 2]} | changes
    root.mkdir(exist_ok=True)
    (root / "campaign.yaml").write_text(yaml.safe_dump(node))
    for run in read_campaign(root / "campaign.yaml").plans():
        if run.seed in arms[run.arm]:
            write_run(root / run.name, arms[run.arm][run.seed])
            (root / run.name / "campaign.json").write_text(json.dumps(run.as_json()))
    return root


def write_run(folder, verdicts):
    lines = rows(
        "toy", **{problem: "".join(two_turns(each)[1]) for problem, each in verdicts.items()}
    )
    firsts = [first for each in verdicts.values() for first in two_turns(each)[0]]
    for line, first in zip(lines, firsts, strict=True):
        if first:
            line["facts"] = turn_facts(float(first == "+"), line["score"])
    write_evaluation(folder, lines, list(verdicts))
    steps = [
        {"step": 0, "val-core/toy/acc/mean@4": 0.25},
        {"step": 1, **STEP, "timing_s/step": 60.0},
        {"step": 2, **STEP, "timing_s/step": 30.0}
        | {"hint/zero_signal_after": 0.25, "val-core/toy/acc/mean@4": 0.5},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in steps))
    (folder / "config.yaml").write_text("trainer: {method: grpo}\n")


def write_evaluation(folder, lines, ids):
    write_rows(folder / "evaluation", "toy", lines)
    settings = {"model": str(folder / "model"), "temperature": 1.0}
    settings["num_samples"] = len(lines) // len(ids)
    write_results(folder / "evaluation", {"toy": ids}, settings)


def two_turns(letters):
    """``"-+ ++"`` is two conversations, ``"-+"`` without a blank behind it two responses."""
    if " " not in letters:
        return [""] * len(letters), list(letters)
    pairs = letters.split()
    return [first for first, _ in pairs], [last for _, last in pairs]


def claims(*bounds):
    return [{"arm": "x", "source": "toy", "measure": "delta"} | each for each in bounds]
