"""Write the model card of an exported checkpoint from what its run left."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from huggingface_hub import ModelCardData
from omegaconf import OmegaConf

from recipe.run.errors import HintError
from recipe.run.run_folder import accuracies
from recipe.study.runs import Run, read_run

_ROWS = {
    "base model": "actor_rollout_ref.model.path",
    "training data": "data.train_files",
    "method of hint-rl": "trainer.method",
    "prompts a step": "data.train_batch_size",
    "responses a prompt": "actor_rollout_ref.rollout.n",
    "learning rate": "actor_rollout_ref.actor.optim.lr",
}


def model_card(folder: Path, step: int, license_name: str) -> str:
    """Return the card of the model that the run in ``folder`` had after ``step`` steps."""
    run = Run(folder.resolve().name, folder)
    with contextlib.suppress(HintError):  # a checkpoint may have left its run
        run = read_run(folder)
    [scores] = [accuracies(row) for row in run.rows if row["step"] == step] or [{}]
    config = OmegaConf.create(run.config)
    rows = {name: OmegaConf.select(config, path) or "unknown" for name, path in _ROWS.items()}
    base = str(rows["base model"])
    data = ModelCardData(
        base_model=base
        if re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
        else None,
        license=license_name,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["reinforcement-learning", "verl", "hint-rl", str(rows["method of hint-rl"])],
    )
    rows |= {"licence": license_name, "steps": step}
    rows |= {f"accuracy on {name}, no hints": f"{score:.1%}" for name, score in scores.items()}
    table = "".join(f"| {name} | {value} |\n" for name, value in rows.items())
    table = re.sub(r"(?<![\w.-])/[^\s,'\]]*/", "", table)  # folders are nobody's business
    said = "Trained by reinforcement learning with verifiable rewards. Nothing else was evaluated."
    return f"---\n{data.to_yaml()}\n---\n\n# {run.name}\n\n{said}\n\n| | |\n|---|---|\n{table}"
