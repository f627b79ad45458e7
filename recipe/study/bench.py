"""Measure what a step costs: methods side by side, in one run of the real trainer.

main_bench.py [bench.NAME=...] [settings of a run]

In a round every method makes one step, on the same problems with the same seeds. The learning rate
is 0: an update costs what it costs, and all methods sample from the same weights.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from recipe.hint.main_hint import run_command
from recipe.hint.methods import BASELINE, METHODS, RELEASED
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError
from recipe.run.whole_file import write_whole

MANAGER = "recipe.study.bench_trainer.BenchManager"
ROWS_FILE = "bench.jsonl"  # in the run's folder: one row per step
Row = Mapping[str, Any]
# Column of the table -> the number's name and form.
_COLUMNS = {
    "step s": ("step_s", ".2f"),
    "rollout": ("rollout_s", ".2f"),
    "update": ("update_s", ".2f"),
    "other": ("other_s", ".2f"),
    "accepted": ("accepted_tokens", ".0f"),
    "discarded": ("discarded_tokens", ".0f"),
    "hint tok": ("hint_tokens", ".0f"),
    "tok/s": ("tokens_per_s", ".0f"),
    "all wrong": ("unresolved_share", ".0%"),
}


@dataclass
class BenchSettings:
    """The ``bench.*`` arguments.

    Attributes:
        arms: Methods by name.
        steps: Measured rounds.
        warmup: Rounds before these, not counted.
    """

    arms: list[str] = field(default_factory=lambda: [BASELINE, *RELEASED])
    steps: int = 6
    warmup: int = 2

    def slots(self) -> list[tuple[str, int]]:
        """Return the method and the round, from 1, of every step."""
        rounds = range(1, self.warmup + self.steps + 1)
        return [(arm, number) for number in rounds for arm in self.arms]


def split_arguments(argv: Sequence[str]) -> tuple[list[str], BenchSettings]:
    """Return the arguments for Hydra, and those of the benchmark.

    Raises:
        ConfigError: If a ``bench.*`` argument is unknown or out of range.
    """
    own = [arg.removeprefix("bench.") for arg in argv if arg.startswith("bench.")]
    rest = [arg for arg in argv if not arg.startswith("bench.")]
    try:
        merged = OmegaConf.merge(OmegaConf.structured(BenchSettings), OmegaConf.from_dotlist(own))
    except OmegaConfBaseException as error:
        raise ConfigError(f"bench.{', bench.'.join(own)}: {str(error).splitlines()[0]}") from error
    settings = OmegaConf.to_object(merged)
    assert isinstance(settings, BenchSettings)
    if BASELINE not in settings.arms or not METHODS.keys() >= {*settings.arms}:
        raise ConfigError(
            f"bench.arms={settings.arms} must name {BASELINE}, which the others are compared "
            f"with, and methods among {', '.join(METHODS)}"
        )
    if settings.steps < 1 or settings.warmup < 0:
        raise ConfigError(f"bench.steps={settings.steps} must be at least 1, bench.warmup 0")
    return rest, settings


def apply_bench_mode(config: DictConfig, bench: BenchSettings) -> None:
    """Rewrite the settings that a benchmark decides.

    Raises:
        ConfigError: If the trainer's mode is not ``sync``, the only one whose steps have a rollout
            phase of their own.
    """
    trainer = config.trainer
    if trainer.v1.trainer_mode != "sync":
        raise ConfigError(f"trainer.v1.trainer_mode={trainer.v1.trainer_mode} must be sync here")
    with open_dict(config):
        trainer.method = RELEASED[0]
        trainer.val_before_train = False
        trainer.save_freq = trainer.test_freq = -1
        trainer.resume_mode = "disable"
        trainer.logger = []
        trainer.total_training_steps = len(bench.slots())
        config.actor_rollout_ref.rollout.agent.agent_loop_manager_class = MANAGER
        config.bench = OmegaConf.structured(bench)


def bench_of(config: DictConfig) -> BenchSettings:
    """Return the settings that :func:`apply_bench_mode` wrote into the configuration."""
    node: Any = OmegaConf.to_container(config.bench)
    return BenchSettings(**node)


def summary_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return means per method, and ratios to the baseline paired by round.

    Args:
        rows: One per step, as ``bench.jsonl`` holds them; those not counted are left out.

    Returns:
        ``arms`` (name to numbers) and ``rounds``.
    """
    by_arm: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row["is_counted"]:
            by_arm.setdefault(row["arm"], {})[row["round"]] = row
    base = by_arm[BASELINE]
    return {"rounds": len(base), "arms": {name: _arm(each, base) for name, each in by_arm.items()}}


def _arm(steps: Mapping[int, Row], base: Mapping[int, Row]) -> dict[str, Any]:
    names = [name for name, value in next(iter(steps.values())).items() if name.endswith("_s")]
    names += ["accepted_tokens", "discarded_tokens", "hint_tokens", "level0", "unresolved"]
    result = {name: statistics.fmean(step[name] for step in steps.values()) for name in names}
    pairs = [(step, base[number]) for number, step in steps.items()]
    ratios = {
        "rollout_ratio": [one["rollout_s"] / two["rollout_s"] for one, two in pairs],
        "step_ratio": [one["step_s"] / two["step_s"] for one, two in pairs],
        "token_ratio": [_tokens(one) / _tokens(two) for one, two in pairs],
    }
    return result | {
        "tokens_per_s": _tokens(result) / result["rollout_s"],
        "unresolved_share": result["unresolved"] / (result["level0"] or 1),
        **{
            name: {"median": statistics.median(each), "min": min(each), "max": max(each)}
            for name, each in ratios.items()
        },
    }


def _tokens(row: Row) -> float:
    return row["accepted_tokens"] + row["discarded_tokens"] + row["hint_tokens"]


def lines_of(summary: Mapping[str, Any]) -> list[str]:
    """Return the tables for the console."""
    lines = [f"{summary['rounds']} rounds, means per step"]
    lines.append("".join([f"{'method':14}", *(f"{name:>10}" for name in _COLUMNS)]))
    for name, arm in summary["arms"].items():
        cells = (f"{format(arm[key], form):>10}" for key, form in _COLUMNS.values())
        lines.append("".join([f"{name:14}", *cells]))
    lines += ["", f"to {BASELINE}: median [min, max]"]
    for name, arm in summary["arms"].items():
        if name != BASELINE:
            found = {what: arm[f"{what}_ratio"] for what in ("rollout", "token", "step")}
            shown = (
                f"{what} {each['median']:.2f} [{each['min']:.2f}, {each['max']:.2f}]"
                for what, each in found.items()
            )
            lines.append("   ".join([f"{name:14}", *shown]))
    return lines


def main() -> None:
    """Run the benchmark; the exit code is 0 only when it ended well."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        own = [f"  bench.{name}={value}" for name, value in vars(BenchSettings()).items()]
        print("\n".join([str(__doc__), "Arguments and their defaults:", *own]))
        return
    with errors_in_one_line():
        argv, bench = split_arguments(sys.argv[1:])
    own = [arg for arg in sys.argv[1:] if arg not in argv]
    program = str(Path(sys.argv[0]).absolute())
    run_command(program, argv, functools.partial(check_and_launch, bench), own)


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
    rows = Path(config.hint.run_dir) / ROWS_FILE
    rows.unlink(missing_ok=True)
    run_to_its_end(config, BenchRunner)
    lines = rows.read_text(encoding="utf-8").splitlines()
    summary = summary_of([json.loads(line) for line in lines])
    write_whole(rows.with_suffix(".json"), json.dumps(summary, indent=1))
    print("\n".join([*lines_of(summary), f"  in {rows.parent}"]), flush=True)
