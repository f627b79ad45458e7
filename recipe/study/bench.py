"""Measure what a step costs: main_bench.py [bench.NAME=...] [settings of a run].

Every method makes a run of its own, on the same problems with the same seeds. The learning rate is
too small to change a weight: an update costs what it costs, and all methods sample from the base.
Arguments: bench.arms=[grpo,sage,sage-light], methods with grpo among them; bench.steps=6, steps
that count; bench.warmup=2, steps before these.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from omegaconf import OmegaConf
from pydantic import Field

from recipe import PROGRAMS
from recipe.hint.command import given_settings
from recipe.hint.methods import BASELINE, METHODS, RELEASED
from recipe.run.children import start_child
from recipe.run.config import check
from recipe.run.ending import errors_in_one_line
from recipe.run.typed import read_typed
from recipe.run.whole_file import write_whole
from recipe.study.runs import Run, read_run

_RATIOS = {"rollout": "rollout_s", "token": "tokens", "step": "step_s"}


@dataclass(frozen=True)
class BenchSettings:
    """The ``bench.*`` arguments: methods by name, measured steps, and steps before these."""

    arms: tuple[str, ...] = (BASELINE, *RELEASED)
    steps: Annotated[int, Field(ge=1)] = 6
    warmup: Annotated[int, Field(ge=0)] = 2

    def settings(self, arm: str, folder: Path) -> list[str]:
        """Return the settings of the run of one method."""
        return [
            f"trainer.method={arm}",
            f"hint.run_dir={folder / arm}",
            f"trainer.total_training_steps={self.warmup + self.steps}",
            "actor_rollout_ref.actor.optim.lr=1e-30",
            *("trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=-1"),
            *("trainer.resume_mode=disable", "trainer.logger=[]"),
        ]


def split_arguments(argv: Sequence[str]) -> tuple[list[str], BenchSettings]:
    """Return the settings of the runs, and those of the benchmark."""
    own = [arg.removeprefix("bench.") for arg in argv if arg.startswith("bench.")]
    node: Any = OmegaConf.to_container(OmegaConf.from_dotlist(own))
    settings = read_typed(BenchSettings, node, "bench")
    check(
        BASELINE in settings.arms and METHODS.keys() >= {*settings.arms},
        f"bench.arms={list(settings.arms)} must name {BASELINE}, which the others are compared "
        f"with, and methods among {', '.join(METHODS)}",
    )
    return [arg for arg in argv if not arg.startswith("bench.")], settings


def rows_of(run: Run, arm: str, warmup: int) -> list[dict[str, Any]]:
    """Return what each step of a run cost, in seconds and tokens."""
    records: dict[int, list[Mapping[str, Any]]] = {}
    for record in run.records():
        records.setdefault(record["step"], []).append(record)
    rows = []
    for row in run.training:
        times = [row[f"timing_s/{name}"] for name in ("step", "gen", "update_actor")]
        own = records[row["step"]]
        at_zero = [each["rounds"][0] for each in own if each["rounds"][0]["level"] == 0]
        accepted = sum(each["trained_tokens"] for each in own)
        rows.append(
            {
                "arm": arm,
                "round": row["step"],
                "is_counted": row["step"] > warmup,
                **dict(zip(("step_s", "rollout_s", "update_s"), times, strict=True)),
                "other_s": 2 * times[0] - sum(times),
                "level0": len(at_zero),
                "unresolved": sum(not any(each["accuracies"]) for each in at_zero),
                "accepted_tokens": accepted,
                "discarded_tokens": row["hint/rollout_tokens"] - accepted,
                "hint_tokens": row["hint/tokens"],
                "tokens": row["hint/rollout_tokens"] + row["hint/tokens"],
            }
        )
    return rows


def summary_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return means per method of the counted steps, and ratios to the baseline by round."""
    steps: Any = pd.DataFrame([row for row in rows if row["is_counted"]])
    means = steps.groupby("arm", sort=False).mean(numeric_only=True)
    means["tokens_per_s"] = means["tokens"] / means["rollout_s"]
    means["unresolved_share"] = means["unresolved"] / means["level0"].replace(0, 1)
    arms = means.to_dict("index")
    for name, key in _RATIOS.items():
        costs = steps.pivot(index="round", columns="arm", values=key)
        ratios = costs.div(costs[BASELINE], axis=0).agg(["median", "min", "max"])
        for arm, spread in ratios.to_dict().items():
            arms[arm][f"{name}_ratio"] = spread
    return {"rounds": steps["round"].nunique(), "arms": arms}


@errors_in_one_line()
def main() -> None:
    """Run every method, and compare; the exit code is 0 only when all ended well."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    settings, bench = split_arguments(sys.argv[1:])
    given, rows = given_settings(settings), list[dict[str, Any]]()
    default = f"outputs/bench-{datetime.now():%Y%m%d-%H%M%S}"
    folder = Path(given.get("hint.run_dir", default)).absolute()
    for arm in bench.arms:
        command = [str(PROGRAMS / "main_hint.py"), *settings, *bench.settings(arm, folder)]
        code = start_child([sys.executable, *command], env=os.environ).wait()
        check(code == 0, f"the run of {arm} ended with exit code {code}")
        if given.get("preflight_only", "false") != "true":
            rows += rows_of(read_run(folder / arm), arm, bench.warmup)
    if not rows:
        return
    write_whole(folder / "bench.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    summary = summary_of(rows)
    write_whole(folder / "bench.json", json.dumps(summary, indent=1))
    arms = summary["arms"]
    table = pd.json_normalize([*arms.values()]).set_axis([*arms]).T
    told = f"{summary['rounds']} steps: means of a step, and ratios to {BASELINE} step by step"
    print(f"{told}\n{table.to_string(float_format='%.2f')}\n  in {folder}", flush=True)
