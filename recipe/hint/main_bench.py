"""What a step of each method costs, side by side: ``main_bench.py [bench.*=...] [overrides]``."""

from __future__ import annotations

import functools
import sys

from omegaconf import DictConfig

from recipe.hint.bench.settings import (
    BenchSettings,
    apply_bench_mode,
    freeze_weights,
    split_arguments,
)
from recipe.hint.main_hint import complaints, run_command


def main() -> None:
    """Run the benchmark; the exit code is 0 only when the run ended well."""
    with complaints():
        argv, bench = split_arguments(sys.argv[1:])
    own = [arg for arg in sys.argv[1:] if arg not in argv]
    run_command(__file__, argv, functools.partial(check_and_launch, bench), own)


def check_and_launch(bench: BenchSettings, config: DictConfig) -> None:
    """Run all arms in one run, checked like a training run before anything is started."""
    from recipe.hint.runtime.preflight.run import preflight

    apply_bench_mode(config, bench)
    print("\n".join(preflight(config, sys.argv[1:])), flush=True)
    if config.preflight_only:
        return
    from recipe.hint.bench.launcher import launch_bench

    freeze_weights(config)
    print("\n".join(launch_bench(config)), flush=True)


if __name__ == "__main__":
    main()
