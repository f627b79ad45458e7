"""What the patches of cpu_platform.py change, seen from inside a process that verl patched.

Run by test_cpu_platform.py, with VERL_PLATFORM=cpu.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import torch
import torch.distributed
import verl  # noqa: F401  - loads the plugin, as in every process of a run
from engines import BASE
from transformers import AutoConfig, AutoModelForTokenClassification
from verl.plugin.platform import get_platform
from verl.plugin.platform.platform_base import PlatformBase
from verl.utils import device, distributed, torch_functional
from verl.utils.model import load_valuehead_model


def error_of(call: Callable[[], Any]) -> str:
    """Name and text of what a call raises; empty when it returns."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the error is the result
        return f"{type(error).__name__}: {error}"
    return ""


def platform() -> dict[str, Any]:
    found = get_platform()
    return {
        "platform": [
            type(found).__name__,
            found.device_name,
            found.communication_backend_name(),
            found.ray_resource_name(),
        ],
        "unanswered": sorted(PlatformBase.__abstractmethods__ - vars(type(found)).keys()),
        "verl.utils.device": [device.get_device_name(), device.is_support_ipc()],
    }


def backend() -> dict[str, Any]:
    one = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    os.environ.update(one)
    bare = functools.partial(
        torch.distributed.init_process_group.__wrapped__,
        "cpu:gloo,cpu:gloo",
        store=torch.distributed.HashStore(),
        rank=0,
        world_size=1,
    )
    refused = error_of(bare)
    # Takes the name of the backend from the platform: the doubled one.
    distributed.initialize_global_process_group_ray(timeout_second=300)
    three = torch.tensor([3.0])
    torch.distributed.all_reduce(three)
    torch.distributed.destroy_process_group()
    return {"doubled backend without the patch": refused, "sum over one process": three.item()}


def versions() -> dict[str, Any]:
    missing = functools.partial(importlib.metadata.version, "no-distribution-has-this-name")
    name = "vllm"
    found = error_of(lambda: importlib.metadata.version(name)) or importlib.metadata.version(name)
    return {"vllm version": found, "version of nothing": error_of(missing).split(":")[0]}


def segments() -> dict[str, Any]:
    segment = shared_memory.SharedMemory(create=True, size=4)
    # A slice, as verl's receiver takes it: torch holds on to the slice, not to the segment.
    view = torch.frombuffer(segment.buf[:4], dtype=torch.uint8)
    view.fill_(7)
    bare = functools.partial(shared_memory.SharedMemory.close.__wrapped__, segment)
    refused = error_of(bare).split(":")[0]
    segment.close()
    segment.unlink()
    return {"close without the patch": refused, "tensor after close": view.tolist()}


def device_calls() -> dict[str, Any]:
    """The names of torch.cuda that verl's trainer, engine and rollout call."""
    module = device.get_torch_device()
    calls: dict[str, tuple[Any, ...]] = {
        "current_device": (),
        "current_stream": (),
        "device_count": (),
        "empty_cache": (),
        "get_device_name": (),
        "ipc_collect": (),
        "is_available": (),
        "manual_seed": (1,),
        "manual_seed_all": (1,),
        "max_memory_allocated": (),
        "max_memory_reserved": (),
        "mem_get_info": (),
        "memory_allocated": (),
        "memory_reserved": (),
        "reset_peak_memory_stats": (),
        "set_device": (0,),
        "set_rng_state": (module.get_rng_state(),),
        "synchronize": (),
    }
    failed = {
        name: error_of(lambda name=name, args=args: getattr(module, name)(*args))
        for name, args in calls.items()
    }
    return {"device calls that fail": [f"{name}: {why}" for name, why in failed.items() if why]}


def pinned() -> dict[str, Any]:
    tensor = torch.ones(3)
    refused = error_of(functools.partial(torch.Tensor.pin_memory.__wrapped__, tensor))
    return {"pin without the patch": refused, "pinned": tensor.pin_memory() is tensor}


def critic() -> dict[str, Any]:
    """A value model as verl loads it."""
    load = functools.partial(
        AutoModelForTokenClassification.from_pretrained.__wrapped__,
        BASE,
        attn_implementation="flash_attention_2",
    )
    config = AutoConfig.from_pretrained(BASE, num_labels=1)
    model = load_valuehead_model(str(BASE), torch.float32, config, trust_remote_code=False)
    values = model(torch.tensor([[1, 2, 3]])).logits
    return {"critic without the patch": error_of(load), "values": list(values.shape)}


def log_probs() -> dict[str, Any]:
    """Largest error of log-probabilities in bf16, of logits in the shape of a model's."""
    generator = torch.Generator().manual_seed(0)
    logits_TV = (4 * torch.randn(64, 32_000, generator=generator)).bfloat16()
    labels_T = torch.randint(32_000, (64,), generator=generator)
    exact_T = logits_TV.double().log_softmax(-1).gather(1, labels_T[:, None])[:, 0]
    bare = torch_functional.logprobs_from_logits_v2.__wrapped__
    errors = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for call in (bare, torch_functional.logprobs_from_logits):
            errors.append((call(logits_TV, labels_T).double() - exact_T).abs().max().item())
    return {"log-probs without the patch": errors[0], "log-probs": errors[1]}


if __name__ == "__main__":
    parts = (
        *(platform, backend, versions, segments, device_calls),
        *(pinned, critic, log_probs),
    )
    found = {name: value for part in parts for name, value in part().items()}
    sys.stdout.write("\n" + json.dumps(found))
