"""Rebuild an embedded world: ``python recipe/hint/main_tiny.py --world two_turn``.

``--only problems,tokenizer`` rebuilds the parts that take seconds; the base takes minutes.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

# Read when torch loads. Threads that spin while they wait for each other lose most of their
# time as soon as another process wants a core: measured 3.5 s instead of 0.4 s per update.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from recipe.run.arguments import Parser  # noqa: E402
from recipe.run.ending import errors_in_one_line  # noqa: E402

if TYPE_CHECKING:
    from recipe.worlds.worlds import World

WORLD_NAMES = ("one_turn", "two_turn", "three_turn")  # here: the worlds need torch
PARTS = ("problems", "tokenizer", "base", "measurement")


def read_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; an unknown part ends the program with a message."""
    parser = Parser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--world", default="one_turn", choices=WORLD_NAMES)
    parser.add_argument("--out", type=Path, help="folder to write; the world's own in data/")
    parser.add_argument(
        "--tables", type=int, help="seed of another world of one turn: secret tables and problems"
    )
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts of {','.join(PARTS)}")
    parser.add_argument("--seed", type=int, help="seed of the pre-training")
    parser.add_argument("--steps", type=int, help="pre-training updates")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of the pre-training")
    arguments = parser.parse_args(argv)
    arguments.only = arguments.only.split(",")
    unknown = sorted(set(arguments.only) - set(PARTS))
    if unknown:
        parser.error(f"--only: unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    for name, least in (("tables", 0), ("seed", 0), ("steps", 1), ("threads", 1)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            parser.error(f"--{name} {value}: it must be at least {least}")
    if arguments.tables is not None and arguments.world != "one_turn":
        parser.error(f"--tables with --world {arguments.world}: only one_turn has secret tables")
    if arguments.tables is not None and arguments.out is None:
        parser.error(
            f"--tables {arguments.tables}: name its folder with --out; data/ is the world's own"
        )
    return arguments


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Build the chosen parts in their order, then the list of hashes."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    arguments = read_arguments(argv)
    from recipe.worlds.worlds import WORLDS, with_other_tables

    world = WORLDS[arguments.world]
    if arguments.tables is not None:
        world = with_other_tables(arguments.tables)
    out: Path = arguments.out or Path(world.folder)
    given = {name: getattr(arguments, name) for name in ("seed", "steps")}
    changes = {name: value for name, value in given.items() if value is not None}
    world = replace(world, recipe=replace(world.recipe, **changes))
    with errors_in_one_line(advice="; name another --out"):
        (out / "base").mkdir(parents=True, exist_ok=True)
    build_parts(arguments, world, out)


def build_parts(arguments: argparse.Namespace, world: World, out: Path) -> None:
    """Build what was chosen into a folder that is there.

    Raises:
        DataError: If a part that it needs is missing.
        OSError: If the disk refuses.
    """
    from recipe.worlds import build

    if "problems" in arguments.only:
        build.build_problems(world, out)
    if "tokenizer" in arguments.only:
        build.build_tokenizer(world, out)
    if "base" in arguments.only:
        chosen = f"--world {arguments.world}"
        if arguments.tables is not None:
            chosen = f"--tables {arguments.tables}"
        command = f"python recipe/hint/main_tiny.py {chosen} --out {out}"
        build.build_base(world, out, arguments.threads, command)
    if "measurement" in arguments.only:
        build.build_measurement(world, out)
    build.write_hashes(out)


if __name__ == "__main__":
    main()
