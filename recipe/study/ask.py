"""Ask a model or a checkpoint one problem: hint levels, answers at each, verdicts.

main_ask.py --id ID [NAME=VALUE ...]
main_ask.py --problem TEXT --answer A [--solution S] [NAME=VALUE ...]

The settings are main_hint.py's: actor_rollout_ref.model.path=MODEL_OR_CHECKPOINT, trainer.method,
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
from recipe.hint.settings import settings_of, style_of
from recipe.hint.turns import Decision, Round, Sample, Turn, at_level
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.problems.schema import Problem
from recipe.run.arguments import Parser
from recipe.run.config import files_of
from recipe.run.errors import DataError
from recipe.run.paths import TRAIN, VAL
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner
from recipe.run.watchdog import Watchdog
from recipe.run.whole_file import write_whole
from recipe.study.tables import printable

ASKED_FILE = "asked.json"
_SHOWN = 2  # different answers of a round, or courses of a conversation
# (role, turn) from the first turn to the last one.
_Talk = list[tuple[str, dict[str, Any]]]


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
    style = style_of(parts.settings, method)
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
            "turns": list(map(_turn, done.turns)),
        }
        for done in rollout.rounds
    ]
    names = ("id", "data_source", "answer", "solution")
    own = {name: getattr(problem, name) for name in names} | {"problem": problem.text}
    cost = {"hint_calls": record.hint_calls, "hint_tokens": record.hint_tokens}
    return own | cost | {"rounds": rounds}


def _turn(turn: Turn) -> dict[str, Any]:
    verdict = turn.verdict
    return {
        "response": turn.response.text,
        "tokens": len(turn.response.token_ids_T),
        "is_truncated": turn.response.is_truncated,
        "parent": list(turn.parent) if turn.parent else None,
        "score": verdict.score if verdict else None,
        "reason": verdict.reason if verdict else "not_graded",
        "extracted": verdict.extracted if verdict else "",
    }


class AskRunner(HintTaskRunner):
    """Asks the model the problem of ``data.val_files`` and writes the answers."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        from recipe.hint.adapter.hint_sources import parts_of_training
        from recipe.study.evaluate import start_replicas

        settings = settings_of(config)
        key = config.data.get("solution_key") or ""
        [problem] = [each for path in config.data.val_files for each in read_problems(path, key)]
        folder.say("starting the vLLM replicas ...")
        replicas = start_replicas(config, watchdog)
        folder.say("asking ...")
        with replicas.engine(config.actor_rollout_ref.rollout, settings) as engine:
            known = {"grader": replicas.builder.grader, "tokenizer": replicas.worker.tokenizer}
            parts = parts_of_training(config, settings, engine, **known)
            asked = asyncio.run(ask(problem, parts))
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
    as_is = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=as_is, allow_abbrev=False)
    parser.add_argument("--id", help="of a problem in data.val_files or data.train_files")
    parser.add_argument("--problem", metavar="TEXT", help="a problem of your own")
    parser.add_argument("--answer", metavar="A", help="its ground truth")
    parser.add_argument("--solution", default="", help="what hints are written from")
    parser.add_argument("--all", action="store_true", help="show every response")
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
    print("\n".join([*asked_lines(asked, shows_all=given.all), "", f"everything is in {path}"]))


def write_question(given: argparse.Namespace, config: DictConfig, target: Path) -> None:
    """Write a file that holds the one problem.

    Raises:
        DataError: If no file has the id.
    """
    if given.problem is not None:
        row = make_row(given.problem, given.answer, solution=given.solution, source="ask")
        write_rows([row], target)
        return
    files = [*files_of(config, VAL), *files_of(config, TRAIN)]
    for path in files:
        for number, problem in enumerate(read_problems(path)):
            if problem.id == given.id:
                pq.write_table(pq.read_table(path).slice(number, 1), target)
                return
    raise DataError(f"--id {given.id} is not in {' or '.join(files)}; give data.val_files=[FILE]")


def asked_lines(asked: dict[str, Any], *, shows_all: bool = False) -> list[str]:
    """Return the problem, then every round with the conversations that end in it.

    Args:
        asked: What ``ask`` gave.
        shows_all: Every response. Else one of each of two verdicts: a right one first, then the
            most frequent.
    """
    lines = [f"problem {asked['id']}, gold answer {asked['answer']}", *_text(asked["problem"])]
    if asked["hint_calls"]:
        cost = f"{asked['hint_calls']} responses, {asked['hint_tokens']} tokens"
        lines.append(f"hints: asked for in {cost}")
    rounds = asked["rounds"]
    turns = [turn for done in rounds for turn in done["turns"]]
    continued = {tuple(turn["parent"]) for turn in turns if turn["parent"]}
    for number, done in enumerate(rounds):
        right = [turn["score"] > 0 for turn in done["turns"] if turn["score"] is not None]
        told = f"{sum(right)} of {len(right)} right" if right else f"{len(done['turns'])} responses"
        head = f"level {done['level']}" if done["level"] else f"{done['role']}, {done['prompt']}"
        lines += ["", f"{head}: {told if done['turns'] else done['hint_status']}"]
        if done["hint"]:
            lines.append(f"  hint{', holds the answer' if done['leaks'] else ''}")
            lines += _text(done["hint"])
        places = [(number, place) for place in range(len(done["turns"]))]
        lines += _talks([_talk(rounds, at) for at in places if at not in continued], shows_all)
    return [printable(line) for line in lines]


def _talk(rounds: Sequence[dict[str, Any]], at: tuple[int, int]) -> _Talk:
    done = rounds[at[0]]
    turn = done["turns"][at[1]]
    before = _talk(rounds, tuple(turn["parent"])) if turn["parent"] else []
    return [*before, (done["role"], turn)]


def _talks(talks: Sequence[_Talk], shows_all: bool) -> Iterator[str]:
    """Show one conversation of each course, right ones first, and count the rest."""
    groups: dict[tuple[str, int], list[_Talk]] = {}
    for number, talk in enumerate(talks):
        course = ", then ".join(f"{turn['reason']} {turn['extracted']}".strip() for _, turn in talk)
        groups.setdefault((course, number * shows_all), []).append(talk)
    in_order = sorted(
        groups, key=lambda each: (-groups[each][0][-1][1]["score"], -len(groups[each]))
    )
    for place, key in enumerate(in_order):
        yield f"  {len(groups[key])} x {key[0]}"
        for role, turn in groups[key][0] if shows_all or place < _SHOWN else ():
            yield f"  {role} ({turn['tokens']} tokens)"
            yield from _text(turn["response"])


def _text(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.strip().splitlines() or ["(empty)"])
