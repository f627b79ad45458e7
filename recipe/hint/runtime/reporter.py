"""What a person sees of a step: three lines; everything else goes to files."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from recipe.hint.report.runs import accuracies
from recipe.hint.runtime.run_folder import RunFolder


class StepReporter:
    """Replaces verl's ``Tracking`` and passes everything on to it."""

    def __init__(self, tracking: Any, folder: RunFolder, config: DictConfig) -> None:
        self._tracking = tracking
        self._folder = folder
        self._total = config.trainer.total_training_steps

    def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        """Send one step's metrics to the file, to the backends, and in short to the console."""
        self._folder.append_metrics(step, data)
        self._tracking.log(data=data, step=step, backend=backend)
        for line in describe(data, step, self._total):
            self._folder.say(line)

    def finish(self, exit_code: int = 0) -> None:
        """Close the backends."""
        self._tracking.finish(exit_code=exit_code)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracking, name)


def describe(data: dict[str, Any], step: int, total: int | None) -> list[str]:
    """Return up to three lines on a training step, and one on a validation."""
    lines = []
    if "timing_s/step" in data:
        lines = _training_lines(data, f"step {step}/{total}" if total else f"step {step}")
    if validation := accuracies(data):
        shares = "  ".join(f"{name} {100 * value:.1f} %" for name, value in validation.items())
        lines.append(f"  validation at step {step}, no hints: {shares}")
    return lines


def closing_lines(folder: RunFolder) -> list[str]:
    """Sum the run up: accuracies at its ends, hint use, and where everything is."""
    rows = folder.read_metrics()
    validations = [(row["step"], accuracies(row)) for row in rows if accuracies(row)]
    steps = [row for row in rows if "hint/prompts" in row]
    lines = []
    if validations:
        (first, before), (last, after) = validations[0], validations[-1]
        for name in after:
            lines.append(
                f"  {name}: {100 * before.get(name, 0.0):.1f} % without hints at step {first}, "
                f"{100 * after[name]:.1f} % at step {last}"
            )
    if steps:
        quarter = max(1, len(steps) // 4)
        early, late = (
            sum(row["hint/prompts_with_hint"] for row in part)
            / sum(row["hint/prompts"] for row in part)
            for part in (steps[:quarter], steps[-quarter:])
        )
        lines.append(
            f"  prompts trained under a hint: {100 * early:.0f} % in the first quarter of the "
            f"steps, {100 * late:.0f} % in the last"
        )
    return [*lines, f"  everything is in {folder.root}"]


def _training_lines(data: dict[str, Any], head: str) -> list[str]:
    def seconds(name: str) -> str:
        return f"{data.get(f'timing_s/{name}', 0.0):.1f} s"

    def count(name: str) -> int:
        return int(data.get(f"hint/{name}", 0))

    prompts = count("prompts")
    before = round((1 - data.get("hint/zero_signal_before", 0.0)) * prompts)
    levels = " ".join(
        f"{level}:{count(name)}"
        for level, name in enumerate(["used_no_hint", *(f"used_level_{k}" for k in range(1, 10))])
        if f"hint/{name}" in data
    )
    phases = {
        "rollout": "gen",
        "log-probs": "old_log_prob",
        "update": "update_actor",
        "sync": "update_weights",
    }
    times = ", ".join(f"{word} {seconds(name)}" for word, name in phases.items())
    signal = count("mixed_groups")
    hint_levels = f"{count('generate_success')}/{count('generate_requested')}"
    return [
        f"{head}  {seconds('step')}  ({times})",
        f"  reward {data.get('critic/score/mean', 0.0):.3f}   "
        f"groups with signal {signal}/{prompts}, {before} at the first level tried",
        f"  hint levels {levels}   hints written {hint_levels}   "
        f"tokens {count('rollout_tokens') + count('tokens')}",
    ]
