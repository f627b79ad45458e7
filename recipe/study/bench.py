"""Measure what a step costs: methods side by side, in one run of the real trainer.

main_bench.py [bench.NAME=...] [settings of a run]

In a round every method makes one step, on the same problems with the same seeds. The learning rate
is 0: an update costs what it costs, and all methods sample from the same weights.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from omegaconf import DictConfig, OmegaConf, open_dict
from pydantic import Field

from recipe.hint.main_hint import run_command
from recipe.hint.methods import BASELINE, METHODS, RELEASED
from recipe.run.config import check
from recipe.run.ending import errors_in_one_line
from recipe.run.typed import read_typed
from recipe.run.whole_file import write_whole
from recipe.study.runs import Run, read_run

MANAGER = "recipe.study.bench_trainer.BenchManager"
_RATIOS = {"rollout": "rollout_s", "token": "tokens", "step": "step_s"}


@dataclass(frozen=True)
class BenchSettings:
    """The ``bench.*`` arguments: methods by name, measured rounds, and rounds before these."""

    arms: tuple[str, ...] = (BASELINE, *RELEASED)
    steps: Annotated[int, Field(ge=1)] = 6
    warmup: Annotated[int, Field(ge=0)] = 2

    def slots(self) -> list[tuple[str, int]]:
        """Return the method and the round, from 1, of every step."""
        rounds = range(1, self.warmup + self.steps + 1)
        return [(arm, number) for number in rounds for arm in self.arms]


def split_arguments(argv: Sequence[str]) -> tuple[list[str], BenchSettings]:
    """Return the arguments for Hydra, and those of the benchmark."""
    own = [arg.removeprefix("bench.") for arg in argv if arg.startswith("bench.")]
    node: Any = OmegaConf.to_container(OmegaConf.from_dotlist(own))
    settings = read_typed(BenchSettings, node, "bench")
    check(
        BASELINE in settings.arms and METHODS.keys() >= {*settings.arms},
        f"bench.arms={list(settings.arms)} must name {BASELINE}, which the others are compared "
        f"with, and methods among {', '.join(METHODS)}",
    )
    return [arg for arg in argv if not arg.startswith("bench.")], settings


def apply_bench_mode(config: DictConfig, bench: BenchSettings) -> None:
    """Rewrite the settings that a benchmark decides; only mode ``sync`` has a rollout phase."""
    trainer = config.trainer
    mode = trainer.v1.trainer_mode
    check(mode == "sync", f"trainer.v1.trainer_mode={mode} must be sync here")
    with open_dict(config):
        trainer.method = RELEASED[0]
        trainer.val_before_train = False
        trainer.save_freq = trainer.test_freq = -1
        trainer.resume_mode = "disable"
        trainer.logger = []
        trainer.total_training_steps = len(bench.slots())
        config.actor_rollout_ref.rollout.agent.agent_loop_manager_class = MANAGER
        config.bench = {**asdict(bench), "arms": list(bench.arms)}


def bench_of(config: DictConfig) -> BenchSettings:
    """Return the settings that :func:`apply_bench_mode` wrote into the configuration."""
    return BenchSettings(**config.bench)


def rows_of(run: Run, bench: BenchSettings) -> list[dict[str, Any]]:
    """Return what each step of a run cost, in seconds and tokens."""
    records: dict[int, list[Mapping[str, Any]]] = {}
    for record in run.records():
        records.setdefault(record["step"], []).append(record)
    rows = []
    for (arm, number), row in zip(bench.slots(), run.training, strict=True):
        times = [row[f"timing_s/{name}"] for name in ("step", "gen", "update_actor")]
        own = records[row["step"]]
        at_zero = [each["rounds"][0] for each in own if each["rounds"][0]["level"] == 0]
        accepted = sum(each["trained_tokens"] for each in own)
        rows.append(
            {
                "arm": arm,
                "round": number,
                "is_counted": number > bench.warmup,
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


def main() -> None:
    """Run the benchmark; the exit code is 0 only when it ended well."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        own = [f"  bench.{name}={value}" for name, value in vars(BenchSettings()).items()]
        print("\n".join([str(__doc__), "Arguments and their defaults:", *own]))
        return
    with errors_in_one_line():
        argv, bench = split_arguments(sys.argv[1:])
    run_command(argv, functools.partial(check_and_launch, bench))


def check_and_launch(bench: BenchSettings, config: DictConfig) -> None:
    """Run all methods in one run, checked like a training run before anything is started."""
    from recipe.hint.adapter.preflight.run import preflight

    apply_bench_mode(config, bench)
    print("\n".join(preflight(config, sys.argv[1:])), flush=True)
    if config.preflight_only:
        return
    from recipe.run.launcher import run_to_its_end
    from recipe.study.bench_trainer import BenchRunner

    config.actor_rollout_ref.actor.optim.lr = 0.0
    run_to_its_end(config, BenchRunner)
    folder = Path(config.hint.run_dir)
    rows = rows_of(read_run(folder), bench)
    write_whole(folder / "bench.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    summary = summary_of(rows)
    write_whole(folder / "bench.json", json.dumps(summary, indent=1))
    arms = summary["arms"]
    table = pd.json_normalize([*arms.values()]).set_axis([*arms]).T
    told = f"{summary['rounds']} rounds: means of a step, and ratios to {BASELINE} round by round"
    print(f"{told}\n{table.to_string(float_format='%.2f')}\n  in {folder}", flush=True)
