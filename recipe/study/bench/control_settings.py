"""What a control-plane run measures: its arguments, its settings, its problems and its table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig, open_dict

from recipe.run.errors import ConfigError

MANAGER = "recipe.study.bench.control.ControlManager"
# In the folder of each size: one row per step.
ROWS_FILE = "control.jsonl"


@dataclass
class ControlSettings:
    """The ``control.*`` arguments.

    Attributes:
        sizes: Prompts of a step; each size is a run of its own.
        tokens: Length of each response.
        token_ms: Time of one token in the simulated engine; 0: responses are there at once.
        steps: Steps of a run; the first is not counted.
        is_solvable: Whether a guess is right in a quarter of the cases; otherwise never, so that a
            search goes through all of its levels.
        launcher: Process of the command, whose children's memory is read.
    """

    sizes: list[int] = field(default_factory=lambda: [128, 256, 512, 1024, 2048])
    tokens: int = 2000
    token_ms: float = 0.0
    steps: int = 3
    is_solvable: bool = True
    launcher: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        if self.steps < 2 or min(self.sizes, default=0) < 1 or self.tokens < 32:
            raise ConfigError(
                f"control.steps={self.steps} must be at least 2, control.tokens={self.tokens} at "
                f"least 32, and control.sizes={self.sizes} numbers of prompts"
            )


def runs_of(config: DictConfig, settings: ControlSettings) -> Iterator[DictConfig]:
    """Yield the settings of a run for each size; its data is written."""
    root = Path(config.hint.run_dir)
    for size in settings.sizes:
        run = deepcopy(config)
        folder = root / str(size)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ROWS_FILE).unlink(missing_ok=True)
        count = size * settings.steps
        write_problems(folder / "problems.parquet", count, is_solvable=settings.is_solvable)
        with open_dict(run):
            run.control = asdict(settings)
            run.hint.run_dir = str(folder)
            run.trainer.update(
                val_before_train=False,
                save_freq=-1,
                test_freq=-1,
                resume_mode="disable",
                logger=[],
                total_training_steps=settings.steps,
            )
            run.data.update(
                train_files=str(folder / "problems.parquet"),
                train_batch_size=size,
                max_response_length=settings.tokens,
            )
            actor = run.actor_rollout_ref
            actor.actor.ppo_mini_batch_size = size
            actor.rollout.update(
                n=8,
                # The prompt of a third turn holds two responses, spelled-out instructions and all.
                prompt_length=2 * settings.tokens + 1024,
                response_length=settings.tokens,
                max_model_len=3 * settings.tokens + 1024,
            )
            actor.rollout.agent.agent_loop_manager_class = MANAGER
        yield run


def write_problems(path: Path, count: int, *, is_solvable: bool = True) -> None:
    """Write problems of which a guess solves a quarter, or none.

    A quarter means that of groups of 8 a tenth is all wrong: 0.75^8.
    """
    rows = []
    for number in range(count):
        text = f"What is left of {number} when fours are taken away?"
        answer = str(number % 4) if is_solvable else "9"
        rows.append(
            {
                "prompt": [{"role": "user", "content": text}],
                "problem": text,
                "solution": f"Look at the last two digits. \\boxed{{{answer}}}",
                "answer": answer,
                "data_source": "simulated",
                "reward_model": {"style": "rule", "ground_truth": answer},
                "extra_info": {"index": f"simulated/{number}"},
            }
        )
    pq.write_table(pa.Table.from_pylist(rows), path)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Return the counted steps of one size."""
    lines = (folder / ROWS_FILE).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines][1:]


def control_lines(rows_by_size: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return a table of all sizes; times are those of the fastest step, memory of the last."""
    lines = [
        "prompts | driver: ours s | verl's s | worker ms/prompt | stall ms (own) | "
        "queue MB, worker + driver | rollout s"
    ]
    for size, rows in rows_by_size.items():
        best = min(rows, key=lambda row: driver_s(row, "ours"))
        traffic = [best[f"{name}_bytes"] / 1e6 for name in ("worker", "driver")]
        stall = max(row["stall_s"] for row in rows), max(row["stall_cpu_s"] for row in rows)
        lines.append(
            f"{size} | {driver_s(best, 'ours'):.3f} | {driver_s(best, 'verl'):.2f} | "
            f"{1000 * min(row['worker_cpu_s'] for row in rows) / size:.1f} | "
            f"{1000 * stall[0]:.0f} ({1000 * stall[1]:.0f}) | "
            f"{traffic[0]:.0f} + {traffic[1]:.0f} | {best['rollout_s']:.1f}"
        )
    for size, rows in rows_by_size.items():
        best = min(rows, key=lambda row: driver_s(row, "ours"))
        parts = sorted(best["parts"].items(), key=lambda item: -item[1])
        lines.append(f"{size}: " + ", ".join(f"{name} {value:.3f}" for name, value in parts))
        peaks = rows[-1]["peak_mib"]
        lines.append(f"{size}: " + ", ".join(f"{name} {mib:.0f}" for name, mib in peaks.items()))
    return lines


def driver_s(row: Mapping[str, Any], whose: str) -> float:
    """Return the driver's serial seconds in code that is ``ours`` or ``verl``'s."""
    return sum(value for name, value in row["parts"].items() if name.startswith(whose))
