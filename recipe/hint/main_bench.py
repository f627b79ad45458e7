"""What a step of each method costs, side by side: ``main_bench.py [bench.*=...] [overrides]``."""

from __future__ import annotations

import sys

import hydra
from omegaconf import DictConfig

from recipe.hint.bench.settings import (
    BenchSettings,
    apply_bench_mode,
    freeze_weights,
    split_arguments,
)
from recipe.hint.main_hint import CONFIG_DIR, complaints, compose_and_run, read_command
from recipe.hint.runtime.multirun import Sweep, is_multirun

_bench = BenchSettings()
_sweep = Sweep(__file__, (), ())


@hydra.main(config_path=str(CONFIG_DIR), config_name="hint_trainer", version_base=None)
def run(config: DictConfig) -> None:
    """All arms in one run, checked like a training run before anything is started."""
    if is_multirun():
        print(_sweep.run_job(config), flush=True)
        return
    with complaints():
        from recipe.hint.runtime.environment import set_environment
        from recipe.hint.runtime.preflight.keys import check_keys
        from recipe.hint.runtime.preflight.settings import check_sections

        check_sections(config)
        set_environment(config)
        check_keys(config)
        apply_bench_mode(config, _bench)
        _check_and_launch(config)


def _check_and_launch(config: DictConfig) -> None:
    from recipe.hint.runtime.preflight.training import preflight

    print("\n".join(preflight(config, sys.argv[1:])), flush=True)
    if config.preflight_only:
        return
    from recipe.hint.bench.launcher import launch_bench

    freeze_weights(config)
    print("\n".join(launch_bench(config)), flush=True)


def main() -> None:
    """Entry point; the exit code is 0 only when the run ended well."""
    global _bench, _sweep
    with complaints():
        argv, _bench = split_arguments(sys.argv[1:])
        own = [arg for arg in sys.argv[1:] if arg not in argv]
        _sweep = Sweep(__file__, *read_command(argv), own)
        compose_and_run(run, _sweep)


if __name__ == "__main__":
    main()
