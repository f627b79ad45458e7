"""Estimate what an update and a rollout need of a device's memory, before anything is loaded."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

import psutil
from omegaconf import DictConfig

from recipe.hint.adapter.models import flash_attn_missing
from recipe.run.config import ACTOR, MODEL_NODE, PROMPT_LENGTH, ROLLOUT, setting, world_size
from recipe.run.errors import one_line

_GIB = 2**30
# Numbers per token that a layer keeps for its backward pass, where attention is fused, in widths of
# the hidden state and of the MLP: counted on Qwen2 and Llama, whose layers keep up to 15 % less.
_HIDDEN, _INNER = 12, 4


def device_memory(device: str) -> int:
    """Return the bytes of the smallest GPU, or of this machine's RAM; 0 if unknown."""
    if device == "cpu":
        return psutil.virtual_memory().total
    said = subprocess.getoutput("nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits")
    return 2**20 * min(map(int, re.findall(r"(?m)^\d+$", said)), default=0)


def memory_lines(config: DictConfig, found: Any, total: int) -> tuple[list[str], list[str]]:
    """Return what a device must hold at least, in GiB, and warnings; never refuse.

    Left out: CUDA, NCCL, the allocator's waste, and a reference policy, which waits in RAM. A
    critic counts as the policy. ``found``: transformers' configuration; ``total``: 0 if unknown.
    """
    import torch
    from verl.utils.model import get_hf_auto_model_class

    try:
        cls: Any = get_hf_auto_model_class(found)
        with torch.device("meta"):  # shapes alone
            trust = bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
            model = cls.from_config(found, trust_remote_code=trust)
        params, text = sum(each.numel() for each in model.parameters()), found.get_text_config()
        hidden, layers, vocabulary = text.hidden_size, text.num_hidden_layers, text.vocab_size
        layer = _HIDDEN * hidden + _INNER * text.intermediate_size
    except Exception as error:  # noqa: BLE001 - of a model's own code
        return [], [f"the memory that the model needs is not known: {one_line(error, 200)}"]
    node = f"{ACTOR}.fsdp_config"
    update, idle = _state(config, node, params)
    if setting(config, "critic.enable"):
        update["critic"] = _state(config, "critic.fsdp", params)[1]
        idle += update["critic"]
    tokens = setting(config, f"{ACTOR}.ppo_max_token_len_per_gpu")
    if not setting(config, f"{ACTOR}.use_dynamic_bsz"):
        row = setting(config, PROMPT_LENGTH) + setting(config, f"{ROLLOUT}.response_length")
        tokens = row * setting(config, f"{ACTOR}.ppo_micro_batch_size_per_gpu")
    width = _width(setting(config, f"{node}.mixed_precision.param_dtype"))
    if not setting(config, f"{MODEL_NODE}.use_fused_kernels"):
        # And the gradient; verl's own log-softmax, in place of flash-attn's, keeps a third copy.
        size = (3 if flash_attn_missing() else 2) * width
        name = f"logits ({tokens:,} tokens x {vocabulary:,} x {size} bytes)"
        update[name] = tokens * vocabulary * size
    checkpoints = setting(config, f"{MODEL_NODE}.enable_gradient_checkpointing")
    kept = layers * hidden + layer if checkpoints else layers * layer  # inputs, and one layer's all
    update["activations"] = tokens * kept * width
    served = params * _width(setting(config, f"{ROLLOUT}.dtype"))
    served /= setting(config, f"{ROLLOUT}.tensor_model_parallel_size") or 1
    share = total * setting(config, f"{ROLLOUT}.gpu_memory_utilization") or served
    if setting(config, "trainer.device") == "cpu":
        share = served + _GIB * int(os.environ.get("VLLM_CPU_KVCACHE_SPACE", 4))
    sleep = [setting(config, f"{ROLLOUT}.{n}") for n in ("free_cache_engine", "enable_sleep_mode")]
    update |= {"vLLM": share} if False in sleep else {}
    rollout = {f"vLLM (weights {served / _GIB:.1f})": share, "trainer": idle}
    lines, warnings = [], []
    for name, parts in (("update", update), ("rollout", rollout)):
        need = sum(parts.values())
        shown = ", ".join(f"{part} {size / _GIB:.1f}" for part, size in parts.items())
        known = f" of {total / _GIB:.1f}" if total else ""
        lines.append(f"memory    {name} {need / _GIB:.1f}{known} GiB a device: {shown}")
        if 0 < total < need:
            warnings.append(f"the {name} does not fit the memory of a device (docs/usage.md)")
    return lines, warnings


def _state(config: DictConfig, node: str, params: int) -> tuple[dict[str, float], float]:
    """Return a device's part of weights, gradients and Adam, and what stays in a rollout."""
    shards = max(setting(config, f"{node}.fsdp_size") or 0, 0) or world_size(config)
    weights = params * _width(setting(config, f"{node}.model_dtype") or "fp32") / shards
    weights *= not setting(config, f"{node}.offload_policy")  # which leaves all of it in RAM
    trained = 0.0 if setting(config, f"{MODEL_NODE}.lora_rank") else weights  # an adapter is small
    kept = {"param_offload": weights, "optimizer_offload": 2 * trained}
    idle = sum(size for name, size in kept.items() if not setting(config, f"{node}.{name}"))
    return {"weights": weights, "gradients": trained, "Adam": 2 * trained}, idle


def _width(dtype: Any) -> int:
    return 4 if "32" in str(dtype) else 2  # bytes of a number
