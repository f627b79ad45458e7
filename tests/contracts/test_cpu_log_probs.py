"""vLLM's CPU build: log-probabilities with vocabularies of real models, and verl's names."""

import pytest
import torch
from vllm.model_executor.models.utils import WeightsMapper
from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler

import recipe.laptop.rollout  # noqa: F401  - changes the sampler
from recipe.run.devices import has_gpu

pytestmark = pytest.mark.skipif(has_gpu(), reason="vLLM's CPU build")
OWN_NAME = "get_rename_mapper"  # vLLM 0.29's


def log_probs(forward, logits_BV, k=None):
    sampler = TopKTopPSampler(logprobs_mode="processed_logprobs")
    generators = {row: torch.Generator().manual_seed(row) for row in range(len(logits_BV))}
    return forward(sampler, logits_BV.clone(), generators, k, None)[1]


@pytest.mark.parametrize("num_tokens", [200, 32_000, 151_936, 262_144])
def test_they_are_those_of_double_precision(num_tokens):
    logits_BV = 4 * torch.randn(4, num_tokens, generator=torch.Generator().manual_seed(0))
    exact_BV = torch.log_softmax(logits_BV.double(), -1)
    found_BV = log_probs(TopKTopPSampler.forward_cpu, logits_BV)
    # Three roundings of numbers down to -40, whose neighbours are 3.8e-6 apart: 3 * 1.9e-6.
    assert (found_BV - exact_BV).abs().max() < 6e-6
    assert (found_BV - exact_BV).mean().abs() < 1e-6


def test_tokens_that_top_k_left_out_stay_out():
    logits_BV = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    found_BV = log_probs(TopKTopPSampler.forward_cpu, logits_BV, k=torch.tensor([2]))
    # 1 / (1 + e^-1) = 0.7311 and the rest
    assert found_BV.exp()[0].tolist() == pytest.approx([0.7311, 0.2689, 0.0, 0.0], abs=1e-4)


def test_a_lora_adapters_mapper_has_the_name_that_verl_asks_for_where_vllm_has_one():
    has = {name: hasattr(WeightsMapper, name) for name in ("get_unstacked_mapper", OWN_NAME)}
    assert has["get_unstacked_mapper"] == has[OWN_NAME]
    if has[OWN_NAME]:
        mapper = WeightsMapper(orig_to_new_prefix={"a.": "b."})
        assert mapper.get_unstacked_mapper().apply_list(["a.q"]) == ["b.q"]
