"""Train two policies, a solver and a guide, in turns: main_alternate.py [NAME=VALUE ...].

The settings are main_hint.py's. The solver trains for hint.mlmt.t_low steps, then the guide for
hint.mlmt.t_high, and so on; trainer.total_training_steps counts both. While one role trains, a
server on this machine plays the other role with its latest weights. Both are kept in hint.run_dir;
after an interruption, run the same command again. With trainer.eval_only=true the current pair is
evaluated.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import fields

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from recipe import PROGRAMS
from recipe.hint.main_hint import run_command
from recipe.run.arguments import Parser
from recipe.run.errors import HintError, one_line
from recipe.study.alternation import phases
from recipe.study.partner import ServerOptions

_OPTIONS = {
    "host": "address of this machine that all machines of the training reach",
    "port": "of the server; 0: a free one",
    "devices": "GPUs that serve, as CUDA_VISIBLE_DEVICES names them",
    "serve_args": "further arguments of vllm serve, such as='--gpu-memory-utilization 0.5'",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; the exit code is 0 only when it has done all it was asked for."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for option in fields(ServerOptions):
        text = f"{_OPTIONS[option.name]} (default: {option.default or 'none'})"
        flag, kind = f"--{option.name.replace('_', '-')}", type(option.default)
        parser.add_argument(flag, type=kind, default=option.default, help=text)
    given, settings = parser.parse_known_args(argv)
    own = [arg for arg in argv if arg not in settings]
    start = functools.partial(check_and_alternate, ServerOptions(**vars(given)))
    run_command(__file__, settings, start, own, runs_here=False)


def check_and_alternate(server_options: ServerOptions, config: DictConfig) -> None:
    """Check everything, then train both roles, or evaluate the pair."""
    from recipe.hint.adapter.preflight.run import preflight
    from recipe.study.alternate import Alternation
    from recipe.study.two_policies import check_phases, check_roles, check_server_options

    settings = [str(each) for each in HydraConfig.get().overrides.task]
    method = check_roles(config)
    check_server_options(config, server_options)
    planned = []
    if not config.trainer.eval_only:
        # As one policy in both roles; the server's settings are checked with each phase.
        own = [each for each in settings if not each.startswith("hint.teacher.")]
        preflight(config, own, num_policies=2)
        check_phases(config, method)
        planned = phases(*method.role_steps, config.trainer.total_training_steps)
        print(f"phases    {len(planned)}: " + ", ".join(f"{r} {a}-{b}" for r, a, b in planned))
    if config.preflight_only:
        return
    say = functools.partial(print, flush=True)
    node = method.settings_node
    try:
        Alternation(config, settings, node, planned, server_options, PROGRAMS, say).run()
    except OSError as error:
        raise HintError(one_line(error)) from error
    print(f"done: {config.hint.run_dir}")


if __name__ == "__main__":
    main()
