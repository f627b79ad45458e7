"""Measure and simulate what a step costs.

main_bench.py [bench.*=...] [settings]            each method on the real stack, side by side
main_bench.py control [control.*=...] [settings]  a run without a model, with up to 2,048 prompts
main_bench.py turns [turns.*=...] [settings]      processor time of a turn, in hint levels
main_bench.py scale [name=value ...]              methods and modes on up to 512 simulated replicas;
                                                  a list of values gives a row for each

docs/lab/performance.md explains the arguments and has the results.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.main_hint import run_command
from recipe.run.ending import errors_in_one_line
from recipe.study.bench.control_settings import ControlSettings
from recipe.study.bench.settings import (
    BenchSettings,
    TurnCostSettings,
    apply_bench_mode,
    freeze_weights,
    read_arguments,
    split_arguments,
)


def main() -> None:
    """Run what the first argument names; the exit code is 0 only when it ended well."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        sections = {
            "bench": BenchSettings(),
            "control": ControlSettings(),
            "turns": TurnCostSettings(),
        }
        own = [
            f"  {section}.{name}={value}"
            for section, settings in sections.items()
            for name, value in vars(settings).items()
            if name != "launcher"  # this process
        ]
        usage = f"usage: {Path(sys.argv[0]).name} [control | turns | scale] [NAME=VALUE ...]"
        print("\n".join([usage, "", str(__doc__), "Arguments and their defaults:", *own]))
        return
    commands = {"control": _control, "turns": _turns, "scale": _scale}
    command = commands.get(sys.argv[1] if sys.argv[1:] else "")
    if command:
        command(sys.argv.pop(1))
        return
    with errors_in_one_line():
        argv, bench = split_arguments(sys.argv[1:])
    own = [arg for arg in sys.argv[1:] if arg not in argv]
    run_command(__file__, argv, functools.partial(check_and_launch, bench), own)


def check_and_launch(bench: BenchSettings, config: DictConfig) -> None:
    """Run all arms in one run, checked like a training run before anything is started."""
    from recipe.hint.adapter.preflight.run import preflight

    apply_bench_mode(config, bench)
    print("\n".join(preflight(config, sys.argv[1:])), flush=True)
    if config.preflight_only:
        return
    from recipe.study.bench.launcher import launch_bench

    freeze_weights(config)
    print("\n".join(launch_bench(config)), flush=True)


def _control(name: str) -> None:
    """Run each size of the control plane and print one table."""
    with errors_in_one_line():
        argv, settings = read_arguments(sys.argv[1:], "control.", ControlSettings)
    own = [name, *(arg for arg in sys.argv[1:] if arg not in argv)]
    run_command(__file__, argv, functools.partial(_launch_control, settings), own)


def _launch_control(settings: ControlSettings, config: DictConfig) -> None:
    from recipe.study.bench.launcher import launch_control

    print("\n".join(launch_control(config, settings)), flush=True)


def _turns(name: str) -> None:
    """Time the methods in this process, with one thread, and print one table."""
    with errors_in_one_line():
        argv, settings = read_arguments(sys.argv[1:], "turns.", TurnCostSettings)
    own = [name, *(arg for arg in sys.argv[1:] if arg not in argv)]
    os.environ["OMP_NUM_THREADS"] = "1"
    run_command(__file__, argv, functools.partial(_print_turns, settings), own, runs_here=False)


def _print_turns(settings: TurnCostSettings, config: DictConfig) -> None:
    from recipe.study.bench.turn_cost import measure

    print("\n".join(measure(config, settings)), flush=True)


def _scale(_: str) -> None:
    """Print a row per simulated case, as it is there."""
    from recipe.study.bench.scale import scale_lines

    with errors_in_one_line():
        for line in scale_lines(sys.argv[1:]):
            print(line, flush=True)


if __name__ == "__main__":
    main()
