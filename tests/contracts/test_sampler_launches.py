"""What vLLM's sampler launches, on which the default of hint.seeded_sampling rests."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler

# No kernel of their own.
VIEWS = {"aten::select", "aten::view", "aten::empty", "aten::detach"}


class Launches(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.found[function._schema.name] += 1
        return function(*args, **(kwargs or {}))


def launches(rows, *, is_seeded):
    generators = {row: torch.Generator().manual_seed(row) for row in range(rows * is_seeded)}
    logits = torch.randn(rows, 100)
    with Launches() as seen:
        TopKTopPSampler("processed_logprobs").forward_native(logits, generators, None, None)
    return sum(count for name, count in seen.found.items() if name not in VIEWS)


@pytest.mark.parametrize("rows", [1, 64, 1024])
def test_a_seeded_step_launches_one_kernel_per_response_more_than_four(rows):
    # log-softmax, softmax, noise, division, argmax; with seeds the noise is drawn row by row.
    assert launches(rows, is_seeded=False) == 5
    assert launches(rows, is_seeded=True) == rows + 4
