"""Warm a model up on worked solutions: hint warmup [NAME=VALUE ...].

The settings are hint train's, and warmup.* for rows and verl's supervised fine-tuning. The model
is in warmup.output/model. After an interruption run the same command again (docs/warmup.md).
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.preflight.inputs import MODEL, check_given, load_model, read_files
from recipe.hint.adapter.rewards import build_grader
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.hints.solution_prefix import solution_levels
from recipe.hint.main_hint import run_command
from recipe.hint.methods import get_method
from recipe.hint.prompt import Message, Style, Texts, with_hint
from recipe.hint.settings import read_texts, settings_of
from recipe.problems.schema import Problem
from recipe.run.children import GRACE_S, deferred_signals, run_child
from recipe.run.config import check
from recipe.run.paths import TRAIN, make_absolute
from recipe.run.run_folder import RunFolder, read_rows
from recipe.run.together import gather_or_cancel
from recipe.run.whole_file import claimed, file_sha256, write_whole
from recipe.study.export import write_whole_model
from recipe.verify.schema import Item, Verdict, formats_asked_for

KINDS = ("solve", "hinted", "write")
Row = tuple[Sequence[Message], str]  # a conversation and the response to learn
_NONE: Row = (), ""
_LAST_LINES = {"boxed": "The final answer is \\boxed{%s}.", "hashes": "#### %s"}
_LAST_LINES |= {"tags": "<answer>%s</answer>", "line": "Answer: %s"}


@dataclass(frozen=True)
class RowMaker:
    """Makes rows; ``shares`` of the problems, by kind, are drawn by ``seed`` and problem id."""

    shares: Mapping[str, float]
    texts: Texts
    style: Style
    grade: Callable[[Sequence[Item]], Awaitable[list[Verdict]]]
    seed: int = 1

    async def rows_of(self, problem: Problem) -> dict[str, Row]:
        """Return rows by kind; an empty one by a reason why there is none."""
        response, asked = solved(problem), formats_asked_for(problem.messages)
        item = Item(response, problem.answer, False, problem.kind, problem.text, asked=asked)
        if not problem.solution.strip() or (await self.grade([item]))[0].score < 1:
            return {"graded wrong" if problem.solution.strip() else "without solution": _NONE}
        levels, draw = solution_levels(problem), random.Random(f"{self.seed}/{problem.id}")
        leaks = await find_leaks(levels, problem, graded_equal(self.grade))
        level, rows = draw.randrange(len(levels) or 1), dict[str, Row]()
        for kind in [kind for kind in KINDS if draw.random() < self.shares[kind]]:
            if kind == "solve":
                rows[kind] = problem.messages, response
            elif not levels or (any(leaks) if kind == "write" else leaks[level]):
                rows[f"{kind} leaking" if levels else f"{kind} without steps"] = _NONE
            elif kind == "write":
                request = hint_request(self.texts, problem.text, problem.solution)
                node = {f"level_{number}": text for number, text in enumerate(levels, 1)}
                text = json.dumps(node, indent=2, ensure_ascii=False)
                rows[kind] = request, f"```json\n{text}\n```"
            elif self.style != "prefill":  # the solution's own beginning: `solve` teaches the rest
                hinted = with_hint(problem.messages, levels[level], self.texts, self.style)
                rows[kind] = hinted, response
        return rows


def solved(problem: Problem) -> str:
    """Return the solution with its answer at the end, in the format that the prompt asks for."""
    solution = problem.solution.strip()
    if problem.kind == "program":
        return solution if "```" in solution else f"```python\n{solution}\n```"
    line = _LAST_LINES[next(iter(formats_asked_for(problem.messages)), "boxed")]
    is_there = line.split("%s")[0].split()[-1] in solution.rpartition("\n")[2]
    return solution if is_there else f"{solution}\n{line % problem.answer}"


def token_rows(parquet_files: str, **_verl: Any) -> list[dict[str, Any]]:
    """Return the rows as verl's trainer takes them, which calls this as a data set's class."""
    import torch

    rows = pq.read_table(parquet_files).drop_columns("kind").to_pylist()
    return [{name: torch.tensor(values) for name, values in row.items()} for row in rows]


def write_token_rows(config: DictConfig, target: Path) -> int:
    """Write all rows, count on the console what is left out, and return their number."""
    settings, renderer = settings_of(config), load_model(config).renderer
    problems = [each for file in read_files(config, TRAIN) for each in file.problems]
    style, texts = settings.style or get_method(config.trainer.method).style, read_texts(settings)
    limit, counts, rows = config.warmup.data.max_length, Counter[str](), list[dict[str, Any]]()
    with build_grader(settings.verify, config) as grader:
        own = texts, style, grader.grade_many, config.data.seed
        maker = RowMaker(config.warmup.shares, *own)
        made = asyncio.run(gather_or_cancel(map(maker.rows_of, problems)))
    for name, (asked, response) in (each for found in made for each in found.items()):
        prompt = [*renderer.render(asked)] if asked else []
        learned = renderer.response(response) if asked else []
        is_short = len(prompt) + len(learned) <= limit
        counts[name if is_short else f"above warmup.data.max_length={limit}"] += 1
        if asked and is_short:  # the loss is on the response and the end of its turn
            row = {"input_ids": prompt + learned, "position_ids": [*range(len(prompt + learned))]}
            rows.append({"kind": name, **row, "loss_mask": [0] * len(prompt) + [1] * len(learned)})
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"rows      {len(rows)} of {len(problems)} problems: {listed}", flush=True)
    pq.write_table(pa.Table.from_pylist(rows), target)
    return len(rows)


def check_and_warm_up(config: DictConfig) -> None:
    """Make the rows, train on them and write the model, as far as that is not done yet."""
    check_given(config, (MODEL, TRAIN))
    make_absolute(config)
    OmegaConf.resolve(config)
    root, own = Path(config.warmup.output).absolute(), config.warmup
    folder, rows, model = RunFolder(root), root / "rows.parquet", root / "model"
    folder.create()
    claim, making = claimed(root / ".lock", wait_s=GRACE_S), TemporaryDirectory(dir=root)
    with deferred_signals(), claim as lock, making as place:
        made, batch = Path(place) / rows.name, own.data.train_batch_size
        per_epoch = write_token_rows(config, made) // batch
        check(per_epoch, f"warmup.data.train_batch_size={batch} is above the number of rows")
        total = own.trainer.total_training_steps or per_epoch * own.trainer.total_epochs
        print(f"steps     {total}, {total / per_epoch:.1f} epochs", flush=True)
        own.trainer.total_training_steps, own.trainer.total_epochs = total, total // per_epoch + 1
        own.trainer.experiment_name = file_sha256(made)
        own.data.train_files, own.trainer.default_local_dir = str(rows), str(root / "checkpoints")
        text, path = OmegaConf.to_yaml(own), root / "verl.yaml"
        is_same = not path.exists() or path.read_text("utf-8") == text
        check(is_same, f"{path} is of other settings or rows; give those, or another warmup.output")
        if not (config.preflight_only or model.exists()):
            made.replace(rows)
            write_whole(path, text)
            # From where verl goes on.
            latest = root / "checkpoints/latest_checkpointed_iteration.txt"
            _show_losses(folder, total, _shown(folder))
            if (step := int(latest.read_text("utf-8")) if latest.exists() else 0) < total:
                folder.begin_after(step)
                _train(own, folder, lock)
            write_whole_model(root / f"checkpoints/global_step_{total}", model, "fp32")
            shutil.rmtree(root / "checkpoints")
    print("checked" if config.preflight_only else f"done: {model}", flush=True)


def _shown(folder: RunFolder) -> set[int]:
    return {row["step"] for row in read_rows(folder.metrics)}


def _show_losses(folder: RunFolder, total: int, shown: set[int]) -> None:
    """Show and keep the loss of each step that verl's trainer has made and that is not shown."""
    for row in read_rows(folder.logs / "losses.jsonl"):
        if row["step"] not in shown:
            shown.add(row["step"])
            folder.append_metrics(row["step"], row["data"])
            told = "loss {train/loss:.4f}  {train/global_tokens} tokens".format_map(row["data"])
            print(f"step {row['step']}/{total}  {told}", flush=True)


def _train(own: DictConfig, folder: RunFolder, lock: int) -> None:
    """Run verl's trainer to its end."""
    losses, log_path = folder.logs / "losses.jsonl", folder.logs / "verl.log"
    losses.unlink(missing_ok=True)  # verl begins it anew
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={own.trainer.n_gpus_per_node}", "-m", "verl.trainer.sft_trainer"]
    command += [f"--config-path={folder.root}", "--config-name=verl", "hydra.run.dir=."]
    show = partial(_show_losses, folder, own.trainer.total_training_steps, _shown(folder))
    with open(log_path, "a", encoding="utf-8") as log:
        env = {"VERL_FILE_LOGGER_PATH": str(losses)}
        code = run_child(command, show, env=env, log=log, pass_fds=(lock,), cwd=folder.logs)
    show()
    check(code == 0, f"verl's trainer ended with exit code {code}; {log_path} says why")


def main() -> None:
    """Run the command; the exit code is 0 only when the model is written."""
    if {"-h", "--help"} & {*sys.argv}:
        print(__doc__)
    else:
        run_command(["+warmup=verl", *sys.argv[1:]], check_and_warm_up, runs_here=False)
