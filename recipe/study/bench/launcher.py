"""Start benchmarks as the launcher starts a run, and read what they left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from recipe.run.launcher import run_to_its_end
from recipe.run.task_runner import HintTaskRunner
from recipe.run.whole_file import write_whole
from recipe.study.bench.plan import ROWS_FILE
from recipe.study.bench.report import lines_of, summary_of


class BenchRunner(HintTaskRunner):
    """The project's task runner with the timed trainer."""

    def run(self, config: DictConfig) -> dict[str, Any]:
        """Run all rounds; what they cost is in the run's folder."""
        # Not above: the command itself starts sooner without verl.
        from recipe.hint.adapter import trainer as hint_trainer
        from recipe.study.bench.trainer import BenchTrainerSync

        hint_trainer.TRAINERS["sync"] = BenchTrainerSync
        return super().run(config)


def launch_bench(config: DictConfig) -> list[str]:
    """Run all rounds.

    Returns:
        The tables; ``bench.json`` in the run's folder holds the same numbers.

    Raises:
        HintError: If the run failed; the message is the first reason any of its processes left.
    """
    (Path(config.hint.run_dir) / ROWS_FILE).unlink(missing_ok=True)
    folder = run_to_its_end(config, BenchRunner)
    text = (folder.root / ROWS_FILE).read_text(encoding="utf-8")
    summary = summary_of([json.loads(line) for line in text.splitlines()])
    write_whole(folder.root / "bench.json", json.dumps(summary, indent=1))
    return [*lines_of(summary), f"  in {folder.root}"]
