"""Ask a model or a checkpoint one problem: hint levels, answers at each, verdicts.

hint ask --id ID [NAME=VALUE ...]
hint ask --problem TEXT --answer A [--solution S] [NAME=VALUE ...]

The settings are hint train's: actor_rollout_ref.model.path=MODEL_OR_CHECKPOINT, trainer.method,
hint.source, actor_rollout_ref.rollout.n (answers per level), hint.seed. A method with several turns
plays its turns. All texts are in RUN/asked.json.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from omegaconf import DictConfig

from recipe.hint.methods import Method
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.settings import settings_of
from recipe.hint.turns import Decision, Round, Sample, at_level
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.problems.schema import Problem
from recipe.run.config import files_of
from recipe.run.ending import Parser
from recipe.run.errors import DataError
from recipe.run.paths import TRAIN, VAL
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner
from recipe.run.watchdog import Watchdog
from recipe.run.whole_file import write_whole
from recipe.study.tables import printable

ASKED_FILE = "asked.json"
_SHOWN = 2  # answers of a round


class EveryLevel(Method):
    """Sample a group at every hint level from 0 to L, whatever the answers are."""

    uses_hints = True

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the group without a hint."""
        return Sample(writes_hints_early=True)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Return the next level, and in the end the newest group that was sampled."""
        last = rounds[-1]
        if last.level == self.max_level or last.hint_status in FINAL_HINT_FAILURES:
            return self.train_last_sampled(rounds)
        return Sample(at_level(last.level + 1))


async def ask(problem: Problem, parts: RolloutParts) -> dict[str, Any]:
    """Return the problem and all rounds with their whole texts, as JSON has them.

    Of the method of ``parts`` its hint levels are played, its turns, or one group.
    """
    method = parts.method
    played = EveryLevel(max_level=method.max_level) if method.uses_hints else method.validation()
    style = parts.settings.style or method.style
    settings = replace(parts.settings, samples=NO_SAMPLES, style=style)
    parts = replace(parts, method=played, settings=settings)
    rollout = PromptRollout(problem, ProblemState(), parts)
    record = (await rollout.run("ask", 0)).record
    rounds = [
        {
            "prompt": done.request.prompt.kind,
            "leaks": done.level in record.leaked_levels,
            **{name: getattr(done, name) for name in ("level", "hint_status", "hint")},
            "role": done.request.role,
            "turns": [
                {
                    "response": turn.response.text,
                    "tokens": len(turn.response.token_ids_T),
                    "is_truncated": turn.response.is_truncated,
                    "parent": list(turn.parent) if turn.parent else None,
                    "score": turn.verdict.score if turn.verdict else None,
                    "reason": turn.verdict.reason if turn.verdict else "not_graded",
                    "extracted": turn.verdict.extracted if turn.verdict else "",
                }
                for turn in done.turns
            ],
        }
        for done in rollout.rounds
    ]
    names = ("id", "data_source", "answer", "solution")
    own = {name: getattr(problem, name) for name in names}
    return own | {"problem": problem.text, "rounds": rounds}


class AskRunner(HintTaskRunner):
    """Asks the model the problem of ``data.val_files`` and writes the answers."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        from recipe.hint.adapter.hint_sources import build_parts
        from recipe.study.evaluate import served_engine

        settings, key = settings_of(config), config.data.get("solution_key") or ""
        [problem] = [each for path in config.data.val_files for each in read_problems(path, key)]
        how = config.actor_rollout_ref.rollout, settings
        with served_engine(config, folder, watchdog, *how) as engine:
            asked = asyncio.run(ask(problem, build_parts(config, settings, engine)))
        write_whole(folder.root / ASKED_FILE, json.dumps(asked, indent=1) + "\n")
        return {"rounds": len(asked["rounds"])}


def main(argv: Sequence[str] | None = None) -> None:
    """Ask, and show the answers."""
    from recipe.hint.main_hint import run_command

    argv = sys.argv[1:] if argv is None else list(argv)
    given, settings = read_arguments(argv)
    run_command(settings, functools.partial(ask_and_show, given))


def read_arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the arguments, and the settings among them."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--id", help="of a problem in data.val_files or data.train_files")
    parser.add_argument("--problem", metavar="TEXT", help="a problem of your own")
    parser.add_argument("--answer", metavar="A", help="its ground truth")
    parser.add_argument("--solution", default="", help="what hints are written from")
    given, settings = parser.parse_known_args(argv)
    if (given.id is None) == (given.problem is None) or (given.problem and not given.answer):
        parser.error("give --id ID of a problem in a file, or --problem TEXT --answer A")
    return given, settings


def ask_and_show(given: argparse.Namespace, config: DictConfig) -> None:
    """Check the question and the settings, run, and print."""
    from recipe.run.launcher import run_to_its_end
    from recipe.study.evaluate import apply_evaluation_mode, preflight_evaluation
    from recipe.study.export import merge_model

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
        merge_model(config)
        path = run_to_its_end(config, AskRunner).root / ASKED_FILE
    asked = json.loads(path.read_text(encoding="utf-8"))
    print("\n".join([*asked_lines(asked), "", f"everything is in {path}"]))


def write_question(given: argparse.Namespace, config: DictConfig, target: Path) -> None:
    """Write a file that holds the one problem; ``DataError`` if no file has the id."""
    if given.problem:
        row = make_row(given.problem, given.answer, solution=given.solution, source="ask")
        return write_rows([row], target)
    files = [*files_of(config, VAL), *files_of(config, TRAIN)]
    for path in files:
        for number, problem in enumerate(read_problems(path)):
            if problem.id == given.id:
                return pq.write_table(pq.read_table(path).slice(number, 1), target)
    raise DataError(f"--id {given.id} is not in {' or '.join(files)}; give data.val_files=[FILE]")


def asked_lines(asked: dict[str, Any]) -> list[str]:
    """Return the problem, then every round with its verdicts and two answers: right ones first."""
    lines = [f"problem {asked['id']}, gold answer {asked['answer']}", *_text(asked["problem"])]
    for done in asked["rounds"]:
        turns = sorted(done["turns"], key=lambda turn: -(turn["score"] or 0.0))
        verdicts = Counter(f"{turn['reason']} {turn['extracted']}".strip() for turn in turns)
        told = ", ".join(f"{count} x {verdict}" for verdict, count in verdicts.items())
        head = f"level {done['level']}" if done["level"] else f"{done['role']}, {done['prompt']}"
        lines += ["", f"{head}: {told or done['hint_status']}"]
        if done["hint"]:
            lines += [
                f"  hint{', holds the answer' if done['leaks'] else ''}",
                *_text(done["hint"]),
            ]
        for turn in turns[:_SHOWN]:
            lines += [f"  {turn['reason']}", *_text(turn["response"])]
    return [printable(line) for line in lines]


def _text(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.strip().splitlines() or ["(empty)"])
