"""Export a training checkpoint to a folder that transformers and vLLM load."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch.distributed.tensor import DTensor, Shard
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from recipe.run.checkpoints import check_undamaged
from recipe.run.errors import ConfigError
from recipe.run.rows import accuracies
from recipe.run.whole_file import move_whole
from recipe.study.merging import check_export, draft_of
from recipe.study.runs import Run, read_run
from recipe.study.tables import percent

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def export_model(checkpoint: str | Path, target: Path, dtype: Literal["fp32", "bf16"]) -> None:
    """Write ``target``, whole or not at all; a LoRA adapter is added to the weights.

    Raises:
        ConfigError: If ``checkpoint`` is not one, incomplete or damaged, or ``target`` exists.
        DataError: If ``checkpoint`` is not in its run's folder.
    """
    folder, step = check_export(checkpoint, target)
    check_undamaged(folder)
    card = model_card(read_run(folder.parents[1]), step, dtype)
    with draft_of(target) as draft:
        write_model(folder / "actor", draft, dtype)
        (draft / "README.md").write_text(card, encoding="utf-8")
        move_whole(draft, target)


def write_model(actor: Path, target: Path, dtype: str) -> None:
    """Write the folder that transformers loads from what verl saved of a trainer.

    Raises:
        ConfigError: If parts are missing or damaged, or the disk refuses.
    """
    model = _empty_model(actor / "huggingface", _DTYPES[dtype])
    parts = _with_adapter(dict(merged_weights(actor)), actor)
    weights = {name: each.to(_DTYPES[dtype]) for name, each in parts}
    if missing := model.state_dict().keys() - weights.keys():
        raise ConfigError(f"{actor} lacks the weights {', '.join(sorted(missing)[:3])}")
    shutil.copytree(actor / "huggingface", target)
    try:
        model.save_pretrained(target, state_dict=weights)  # with a configuration of the new dtype
    except SafetensorError as error:  # a full disk is no OSError to this library
        raise ConfigError(
            f"{target.parent}: the weights cannot be written there: {error}; make room on its disk"
        ) from error
    settings = actor / "huggingface" / "generation_config.json"
    if settings.exists():  # the library has made one of the configuration
        shutil.copy2(settings, target)
    for path in target.glob("*.safetensors"):  # the library makes them readable to nobody else
        path.chmod((target / "config.json").stat().st_mode)


def _with_adapter(
    weights: dict[str, torch.Tensor], actor: Path
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield a model's weights with a LoRA adapter's products added, under the model's names.

    Args:
        weights: As they were saved; emptied.
        actor: Where the adapter's rank and alpha are.
    """
    adapter = {name: weights.pop(name) for name in [*weights] if ".lora_" in name}
    scale = _scale(actor) if adapter else 0.0
    while weights:
        name, weight = weights.popitem()
        pair = [name.replace(".base_layer.", f".lora_{each}.default.") for each in "BA"]
        if adapter.keys() >= {*pair}:
            left, right = (adapter.pop(each).float() for each in pair)
            weight = weight + scale * (left @ right)
        yield name.removeprefix("base_model.model.").replace(".base_layer.", "."), weight
    if adapter:
        raise ConfigError(
            f"{actor} has an adapter that is no product of two matrices: {min(adapter)}"
        )


def _scale(actor: Path) -> float:
    path = actor / "lora_train_meta.json"
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        return meta["lora_alpha"] / meta["r"]
    except (OSError, ValueError, KeyError, ZeroDivisionError) as error:
        raise ConfigError(
            f"{path} does not say the adapter's r and lora_alpha ({error}); restore it"
        ) from error


def merged_weights(actor: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the whole weights from what each rank saved, as they were saved.

    Raises:
        ConfigError: If a rank's file is missing, or a weight is sharded as FSDP does not.
    """
    files = sorted(actor.glob("model_world_size_*_rank_0.pt"))
    if len(files) != 1:
        raise ConfigError(f"{actor}: found {len(files)} files model_world_size_*_rank_0.pt, not 1")
    first = _load(files[0])
    sharded = [each for each in first.values() if isinstance(each, DTensor)]
    # A hybrid mesh holds the whole model once per row; its first row are the first ranks.
    num_ranks = sharded[0].device_mesh.shape[-1] if sharded else 1
    names = [str(files[0]).replace("_rank_0.pt", f"_rank_{rank}.pt") for rank in range(num_ranks)]
    shards = [first, *(_load(Path(name)) for name in names[1:])]
    for name, value in first.items():
        if not isinstance(value, DTensor):
            yield name, value
            continue
        placement = value.placements[-1]
        parts = [each[name].to_local() for each in shards]
        if isinstance(placement, Shard):
            yield name, torch.cat(parts, dim=placement.dim)
        elif placement.is_replicate():
            yield name, parts[0]
        else:
            raise ConfigError(f"{actor}: {name} has the placement {placement}, expected a shard")


def model_card(run: Run, step: int, dtype: str) -> str:
    """Return the card: what was trained on what, how far, and what it scored; no paths."""
    base = Path(str(run.setting("actor_rollout_ref.model.path"))).name
    rows = [row for row in run.rows if row["step"] <= step and accuracies(row)]
    facts = {
        "method": run.method,
        "base model": base,
        "steps": f"{step} of {run.setting('trainer.total_training_steps')}",
        "prompts per step": run.setting("data.train_batch_size"),
        "responses per prompt": run.setting("actor_rollout_ref.rollout.n"),
        "learning rate": run.setting("actor_rollout_ref.actor.optim.lr"),
        "strongest hint level": run.setting("hint.max_level"),
        "seed": run.setting("hint.seed"),
        "dtype of these weights": dtype,
        **run.machine.get("version", {}),
    }
    lines = ["---", "library_name: transformers", "pipeline_tag: text-generation", "---", ""]
    lines += [f"# {base}, trained with {run.method}", ""]
    lines += ["Prompts need no hint: hints were used in training only.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_plain(value)} |" for name, value in facts.items()]
    if rows:
        lines += ["", "Accuracy on the problems of validation, without hints:", ""]
        lines += [f"| | step {rows[0]['step']:g} | step {rows[-1]['step']:g} |", "|---|---|---|"]
        first, last = accuracies(rows[0]), accuracies(rows[-1])
        for name, value in last.items():
            before = f"{percent(first[name])} %" if name in first else "-"
            lines.append(f"| {_plain(name)} | {before} | {percent(value)} % |")
    return "\n".join([*lines, ""])


def _load(path: Path) -> dict[str, Any]:
    """Load a rank's file; like verl's own resuming, this trusts whoever wrote the checkpoint."""
    if not path.is_file():
        raise ConfigError(f"{path} is missing: copy the files of all ranks beside each other")
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ConfigError(
            f"{path} is damaged: {_first_line(error)}; restore the file, or take another checkpoint"
        ) from error


def _empty_model(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    try:
        config = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{folder} holds no model's configuration: {_first_line(error)}; restore config.json, "
            f"or take another checkpoint"
        ) from error
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _plain(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
