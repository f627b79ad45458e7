"""Measure what a step costs: each method on the real stack, side by side.

main_bench.py [bench.*=...] [settings]

docs/lab/performance.md has the results.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.main_hint import run_command
from recipe.run.ending import errors_in_one_line
from recipe.study.bench.settings import (
    BenchSettings,
    apply_bench_mode,
    freeze_weights,
    split_arguments,
)


def main() -> None:
    """Run what the first argument names; the exit code is 0 only when it ended well."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        own = [f"  bench.{name}={value}" for name, value in vars(BenchSettings()).items()]
        usage = f"usage: {Path(sys.argv[0]).name} [NAME=VALUE ...]"
        print("\n".join([usage, "", str(__doc__), "Arguments and their defaults:", *own]))
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


if __name__ == "__main__":
    main()
