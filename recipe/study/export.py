"""Export a checkpoint as a model: ``hint export CHECKPOINT OUT``.

OUT holds safetensors, tokenizer, chat template and a model card; transformers and vLLM load it.
``hint export inspect RUN OUT.eval`` writes an evaluation as a log of inspect_ai.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData
from omegaconf import DictConfig, OmegaConf

from recipe.run.checkpoints import MERGED, check_undamaged, checkpoint_of, model_files, step_of
from recipe.run.children import run_child
from recipe.run.config import check
from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.errors import ConfigError, HintError
from recipe.run.run_folder import accuracies
from recipe.run.whole_file import whole_folder
from recipe.study.inspect_log import write_log
from recipe.study.runs import Run, read_run

if TYPE_CHECKING:  # it loads for seconds
    import torch

_OF_CARD = {
    "base model": "actor_rollout_ref.model.path",
    "training data": "data.train_files",
    "method of hint-rl": "trainer.method",
    "prompts a step": "data.train_batch_size",
    "responses a prompt": "actor_rollout_ref.rollout.n",
    "learning rate": "actor_rollout_ref.actor.optim.lr",
}


@errors_in_one_line()
def main(argv: list[str] | None = None) -> int:
    parser = Parser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=("inspect",), help="a log of RUN's evaluation")
    parser.add_argument("checkpoint", type=Path, help="RUN/checkpoints/global_step_N, or RUN")
    parser.add_argument("out", type=Path, help="folder to make, or OUT.eval")
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--license", default="unknown", help="of the model, for its card")
    given = parser.parse_args(argv)
    if given.kind:
        write_log(given.checkpoint, given.out)
        print(f"{given.out}: a log for `inspect view`")
        return 0
    check(not given.out.exists(), f"{given.out} already exists; give a new folder")
    folder = checkpoint_of(given.checkpoint)
    if folder is None or (step := step_of(folder)) is None:
        told = "is not a checkpoint; give a folder checkpoints/global_step_N of a run"
        raise ConfigError(f"{given.checkpoint} {told}")
    check_undamaged(folder)
    card = model_card(folder.parent.parent, step, given.license)
    write_whole_model(folder / "actor", given.out, given.dtype, card)
    print(f"{given.out}: {given.dtype} weights, tokenizer and model card")
    return 0


def model_card(folder: Path, step: int, license_name: str) -> str:
    """Return the card of the model that the run in ``folder`` had after ``step`` steps."""
    run = Run(folder.resolve().name, folder)
    with contextlib.suppress(HintError):  # a checkpoint may have left its run
        run = read_run(folder)
    [scores] = [accuracies(row) for row in run.rows if row["step"] == step] or [{}]
    config = OmegaConf.create(run.config)
    rows = {name: OmegaConf.select(config, path) or "unknown" for name, path in _OF_CARD.items()}
    base = str(rows["base model"])
    is_on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
    data = ModelCardData(
        base_model=base if is_on_hub else None,
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


def merge_model(config: DictConfig) -> None:
    """Make a model where ``actor_rollout_ref.model.path`` is a checkpoint, once for each.

    It has fp32 weights, which vLLM rounds as it is told to; it lies beside the checkpoint's parts
    and becomes the setting. A process of its own gives the memory of the weights back.
    """
    checkpoint = checkpoint_of(config.actor_rollout_ref.model.path)
    if checkpoint is None:
        return
    target = checkpoint / MERGED
    config.actor_rollout_ref.model.path = str(target)
    if model_files(checkpoint)[1]:
        return
    command = [sys.executable, "-m", "recipe.hint.main_export", str(checkpoint), str(target)]
    command += ["--dtype", "fp32"]
    # Not in the repository's root, whose folders would shadow installed packages.
    code = run_child(command, cwd=checkpoint)
    check(code == 0, f"{checkpoint} cannot be merged: exit code {code}")


def write_whole_model(actor: Path, target: Path, dtype: str, card: str = "") -> None:
    """Write what verl saved of a trainer as a model with its card, whole or not at all.

    verl's own merger rounds each part to bf16 first and leaves the adapter apart.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch_dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    files = actor / "huggingface"
    with torch.device("meta"):
        config = AutoConfig.from_pretrained(files)
        model = AutoModelForCausalLM.from_config(config, dtype=torch_dtype)
    parts = _with_adapter(dict(merged_weights(actor)), actor)
    weights = {name: each.to(torch_dtype) for name, each in parts}
    if missing := model.state_dict().keys() - weights.keys():
        raise ConfigError(f"{actor} lacks the weights {', '.join(sorted(missing)[:3])}")
    settings = files / "generation_config.json"
    with whole_folder(target) as draft:
        shutil.copytree(files, draft, dirs_exist_ok=True)
        save_readable(model, draft, state_dict=weights)  # with a configuration of the new dtype
        if settings.exists():  # the library has made one of the configuration
            shutil.copy2(settings, draft)
        if card:
            (draft / "README.md").write_text(card, encoding="utf-8")


def save_readable(model: Any, target: Path, **options: Any) -> None:
    """Save a model of transformers, with weights that whoever reads the folder can read."""
    model.save_pretrained(target, **options)
    for path in target.glob("*.safetensors"):  # the library makes them readable to nobody else
        path.chmod((target / "config.json").stat().st_mode)


def _with_adapter(
    weights: dict[str, torch.Tensor], actor: Path
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield a model's weights with a LoRA adapter's products added, and empty ``weights``."""
    adapter = {name: weights.pop(name) for name in [*weights] if ".lora_" in name}
    scale = 0.0
    if adapter:
        meta = json.loads((actor / "lora_train_meta.json").read_text(encoding="utf-8"))
        scale = meta["lora_alpha"] / meta["r"]
    while weights:
        name, weight = weights.popitem()
        pair = [name.replace(".base_layer.", f".lora_{each}.default.") for each in "BA"]
        if adapter.keys() >= {*pair}:
            left, right = (adapter.pop(each).float() for each in pair)
            weight = weight + scale * (left @ right)
        yield name.removeprefix("base_model.model.").replace(".base_layer.", "."), weight
    check(not adapter, f"{actor} has an adapter that is no product of two matrices: {[*adapter]}")


def merged_weights(actor: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the whole weights from what each rank saved, as they were saved."""
    import torch
    from torch.distributed.tensor import DTensor, Shard

    files = sorted(actor.glob("model_world_size_*_rank_0.pt"))
    check(len(files) == 1, f"{actor}: {len(files)} files model_world_size_*_rank_0.pt, not 1")
    load = functools.partial(torch.load, map_location="cpu", weights_only=False)
    first = load(files[0])
    sharded = [each for each in first.values() if isinstance(each, DTensor)]
    # A hybrid mesh holds the whole model once per row; its first row are the first ranks.
    num_ranks = sharded[0].device_mesh.shape[-1] if sharded else 1
    ranks = range(1, num_ranks)
    others = [load(str(files[0]).replace("_rank_0.pt", f"_rank_{rank}.pt")) for rank in ranks]
    for name, value in first.items():
        if not isinstance(value, DTensor):
            yield name, value
            continue
        placement = value.placements[-1]
        parts = [each[name].to_local() for each in (first, *others)]
        if isinstance(placement, Shard):
            yield name, torch.cat(parts, dim=placement.dim)
        else:
            check(placement.is_replicate(), f"{actor}: {name} is placed as {placement}, no shard")
            yield name, parts[0]
