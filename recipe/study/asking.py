"""The driver of a question inside Ray: vLLM replicas without a trainer, one prompt rollout."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from omegaconf import DictConfig

from recipe.hint.adapter.hint_sources import parts_of_training
from recipe.hint.settings import settings_of
from recipe.problems.columns import read_problems
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner
from recipe.run.watchdog import Watchdog, WatchedEngine
from recipe.run.whole_file import write_whole
from recipe.study.evaluation.asking import ask
from recipe.study.evaluation_run import start_limit, start_replicas, watched

ASKED_FILE = "asked.json"


class AskRunner(HintTaskRunner):
    """Asks the model the problem of ``data.val_files`` and writes the answers."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        settings = settings_of(config)
        key = config.data.get("solution_key") or ""
        [problem] = [each for path in config.data.val_files for each in read_problems(path, key)]
        folder.say("starting the vLLM replicas ...")
        with start_limit(config, watchdog):
            builder, worker, manager = start_replicas(config)
        folder.say("asking ...")
        engine = WatchedEngine(builder.build(config.actor_rollout_ref.rollout, settings))
        parts = parts_of_training(
            config, settings, engine, grader=builder.grader, tokenizer=worker.tokenizer
        )
        with watched(manager, engine, config, watchdog):
            asked = asyncio.run(ask(problem, parts))
        write_whole(folder.root / ASKED_FILE, json.dumps(asked, indent=1) + "\n")
        return {"rounds": len(asked["rounds"])}
