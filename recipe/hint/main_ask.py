"""Ask a model or a checkpoint one problem: hint levels, answers at each, verdicts.

main_ask.py --id ID [--file F.parquet] [NAME=VALUE ...]
main_ask.py --problem TEXT --answer A [--solution S] [NAME=VALUE ...]

The settings are main_hint.py's: actor_rollout_ref.model.path=MODEL_OR_CHECKPOINT, trainer.method,
hint.source, actor_rollout_ref.rollout.n (answers per level), hint.seed. A method with several turns
plays its turns. All texts are in RUN/asked.json.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
from omegaconf import DictConfig

from recipe.hint.main_hint import run_command
from recipe.problems.columns import Labels, make_row, read_problems, write_rows
from recipe.problems.rows import checked_problem
from recipe.problems.schema import FieldFault
from recipe.run.arguments import Parser, text
from recipe.run.errors import DataError
from recipe.study.report.asked import asked_lines
from recipe.verify.schema import Kind

# Options that describe a problem which is not in a file.
_OF_TEXT = ("answer", "solution", "kind", "system_prompt")
# By the column that each becomes.
_ARGUMENTS = {
    "reward_model.ground_truth": "--answer",
    "solution": "--solution",
    "prompt": "--problem with --system-prompt",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Ask, and show the answers."""
    argv = sys.argv[1:] if argv is None else list(argv)
    given, settings = read_arguments(argv)
    own = [arg for arg in argv if arg not in settings]
    run_command(__file__, settings, functools.partial(ask_and_show, given), own)


def read_arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the arguments, and the settings among them."""
    parser = Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--id", help="of a problem in --file, or in data.val_files or train_files")
    parser.add_argument("--file", type=Path, help="a file that main_prepare.py wrote")
    parser.add_argument("--problem", type=text, metavar="TEXT", help="a problem of your own")
    parser.add_argument("--answer", type=text, metavar="A", help="its ground truth")
    parser.add_argument("--solution", type=text, metavar="S", help="what hints are written from")
    parser.add_argument("--kind", choices=get_args(Kind), help="default: maths")
    parser.add_argument("--system-prompt", type=text, help="empty for none (default: the kind's)")
    parser.add_argument("--all", action="store_true", help="show every response")
    given, settings = parser.parse_known_args(argv)
    if (given.id is None) == (given.problem is None):
        parser.error("give --id ID of a problem in a file, or --problem TEXT --answer A")
    if given.problem is not None and not (given.answer or "").strip():
        parser.error("--problem needs --answer A: the responses are graded by it")
    own, others = ("--id", _OF_TEXT) if given.problem is None else ("--problem", ("file",))
    if unread := [name for name in others if getattr(given, name) is not None]:
        names = " ".join(f"--{name.replace('_', '-')}" for name in unread)
        parser.error(f"{names} would not be read with {own}; drop it")
    return given, settings


def ask_and_show(given: argparse.Namespace, config: DictConfig) -> None:
    """Check the question and the settings, run, and print."""
    from recipe.study.evaluation.draw import apply_evaluation_mode
    from recipe.study.evaluation_checks import idle_settings, preflight_evaluation
    from recipe.study.merging import merge_model

    for line in idle_settings(config, sys.argv[1:], asks=True):
        print(line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "question.parquet"
        write_question(given, config, file)
        config.data.val_files = [str(file)]
        config.trainer.eval_only = True
        apply_evaluation_mode(config, config.trainer.method, "ask")
        preflight_evaluation(config, sys.argv[1:])
        if config.preflight_only:
            print("the question and the settings can be used")
            return
        merge_model(config, functools.partial(print, flush=True))
        from recipe.run.launcher import run_to_its_end
        from recipe.study.asking import ASKED_FILE, AskRunner

        path = run_to_its_end(config, AskRunner).root / ASKED_FILE
    asked = json.loads(path.read_text(encoding="utf-8"))
    print("\n".join([*asked_lines(asked, shows_all=given.all), "", f"everything is in {path}"]))


def write_question(given: argparse.Namespace, config: DictConfig, target: Path) -> None:
    """Write a file that holds the one problem.

    Raises:
        DataError: If no file has the id, or the problem's own fields cannot be used.
    """
    if given.problem is not None:
        row = make_row(
            given.problem,
            given.answer,
            solution=given.solution or "",
            labels=Labels("ask", "test", given.kind or "maths"),
            system_prompt=given.system_prompt,
        )
        try:
            checked_problem(row)
        except FieldFault as fault:
            raise DataError(f"{_ARGUMENTS.get(fault.column, '--problem')}: {fault}") from fault
        write_rows([row], target)
        return
    from recipe.hint.adapter.preflight.data import check_given
    from recipe.hint.adapter.preflight.settings import files_of
    from recipe.run.paths import TRAIN, VAL

    if not given.file:
        check_given(config, (VAL,))
    files = [given.file] if given.file else files_of(config, VAL) + files_of(config, TRAIN)
    for path in files:
        for number, problem in enumerate(read_problems(path)):
            if problem.id == given.id:
                pq.write_table(pq.read_table(path).slice(number, 1), target)
                return
    names = dict.fromkeys(map(str, files))  # validation and training may share a file
    known = ", ".join(problem.id for problem in read_problems(files[0])[:3])
    raise DataError(f"--id {given.id} is not in {' or '.join(names)}; the first has {known}, ...")


if __name__ == "__main__":
    main()
