"""Train, or evaluate with ``trainer.eval_only=true``: ``hint train [NAME=VALUE ...]``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from recipe.hint.command import (
    CONFIG_DIR,
    choose_hardware,
    explain,
    help_text,
    set_config_paths,
    split_command,
    translated,
)
from recipe.run.config import GROUP, names, setting
from recipe.run.devices import has_gpu
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError

_SHOWN = (
    *names("trainer", "method total_training_steps"), "actor_rollout_ref.model.path",
    *names("data", "train_files train_batch_size"), GROUP,
)  # fmt: skip


def main() -> None:
    """Run the command; the exit code is 0 only when the run ended well."""
    run_command(sys.argv[1:], check_and_launch)


def show_default_run() -> int:
    """Print what would be trained without any setting, and start nothing."""
    run_command([], _show_run, runs_here=False)
    return 2


def _show_run(config: DictConfig) -> None:
    preset = HydraConfig.get().runtime.choices.get("hardware")
    shown = [("hardware", preset), *((name, setting(config, name)) for name in _SHOWN)]
    print("nothing is started; this would train with", *(f"  {n}={v}" for n, v in shown), sep="\n")
    print("start it: hint train --yes; change it: hint train NAME=VALUE ...; see hint train --help")


def check_and_launch(config: DictConfig) -> None:
    """Check everything, print what will run, and run it."""
    from recipe.hint.adapter.preflight.run import preflight
    from recipe.run.reporter import closing_lines
    from recipe.run.resume import is_finished
    from recipe.run.run_folder import RunFolder

    if config.trainer.eval_only:
        from recipe.study.evaluate import check_and_evaluate

        check_and_evaluate(config, sys.argv[1:])
        return
    print("\n".join(preflight(config, sys.argv[1:])), flush=True)
    if config.preflight_only:
        return
    if is_finished(config):
        print("nothing to do: the last step is trained and saved")
        print("\n".join(closing_lines(RunFolder(config.hint.run_dir))), flush=True)
        return
    from recipe.run.launcher import run_to_its_end
    from recipe.run.task_runner import HintTaskRunner

    try:
        lines = closing_lines(run_to_its_end(config, HintTaskRunner))
    except KeyboardInterrupt:
        print(f"to go on: the same command with hint.run_dir={config.hint.run_dir}")
        raise
    print("\n".join(["done", *lines]), flush=True)


def run_command(
    argv: Sequence[str], start: Callable[[DictConfig], None], *, runs_here: bool = True
) -> None:
    """Start a run, or one of Hydra's own actions.

    ``start`` gets the composed configuration; ``runs_here``: it trains in this process tree.
    """
    with _errors_of_settings():
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")
        set_config_paths()
        options, settings = split_command(translated(argv))
        if {"-h", "--help"} & {*options}:
            print(help_text())
            return
        if {"-m", "--multirun"} & {*options} or "hydra.mode=multirun" in map(str.lower, settings):
            raise ConfigError("a process holds one run; `hint campaign` makes several")
        settings, notice = choose_hardware(settings, has_gpu())
        if notice and not options:  # programs read what Hydra's options print
            print(notice, flush=True)

        @hydra.main(config_path=str(CONFIG_DIR), config_name="hint_trainer", version_base=None)
        def run(config: DictConfig) -> None:
            # In here too: Hydra would print the overrides beside an error that passes through it.
            with _errors_of_settings():
                from recipe.hint.adapter.models import choose_attention
                from recipe.run.environment import set_environment

                # Before the libraries that read the environment when they are imported.
                set_environment(config)
                with _warm_processes(config) if runs_here else contextlib.nullcontext():
                    for line in choose_attention(config):
                        print(line, flush=True)
                    start(config)

        # Options last: one with an optional value would take the next setting for it.
        sys.argv[1:] = [*settings, *options]
        run()


def _warm_processes(config: DictConfig) -> contextlib.AbstractContextManager[Any]:
    """Import a CPU run's libraries once, while its settings are checked; not in a cluster."""
    is_off = {"RAY_ADDRESS", "HINT_NO_FORK_SERVER"} & os.environ.keys()
    is_off = is_off or config.ray_kwargs.ray_init.get("address") or config.trainer.nnodes > 1
    if config.preflight_only or config.trainer.device != "cpu" or is_off:
        return contextlib.nullcontext()
    from recipe.laptop.fork_server_process import fork_server

    return fork_server()


@contextlib.contextmanager
def _errors_of_settings() -> Iterator[None]:
    """Print an error in one line and exit; one of Hydra's names the setting that was meant."""
    with errors_in_one_line():
        try:
            yield
        except (HydraException, OmegaConfBaseException) as error:  # some are OSErrors too
            raise ConfigError(explain(error, sys.argv[1:])) from error


if __name__ == "__main__":
    main()
