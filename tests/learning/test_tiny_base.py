"""The committed base does what ``BASE.json`` advertises, on a sample of the held-out problems.

Only another base or another torch changes what it samples: unit/worlds/test_task.py compares its
files with their hashes.
"""

import json
import random
from pathlib import Path

import pytest
import torch

from recipe.worlds import build, chains
from recipe.worlds.build import ONE_TURN
from recipe.worlds.chains import is_faithful

pytestmark = pytest.mark.long

TINY = Path(__file__).parents[2] / "data" / "tiny"
NUM_PROBLEMS = 50


@pytest.fixture(scope="module")
def sampler():
    return build.load_base(TINY / "base")


@pytest.fixture(scope="module")
def hard():
    return random.Random(1).sample(build.val_items(ONE_TURN)["hard"], NUM_PROBLEMS)


@pytest.fixture(scope="module")
def hint_levels(sampler, hard):
    return chains.written_hints(sampler, hard)


def mean(values):
    return sum(values) / len(values)


def test_the_base_has_the_advertised_size_and_plain_sampling(sampler):
    facts = json.loads((TINY / build.FACTS_NAME).read_text())
    model = sampler.model
    assert model.num_parameters() == facts["parameters"]
    assert facts["parameters"] < 1_000_000
    assert (model.config.model_type, model.dtype) == ("llama", torch.float32)
    assert model.config.vocab_size == len(sampler.tokenizer) == facts["vocabulary"]
    assert model.generation_config.eos_token_id == sampler.tokenizer.eos_token_id
    assert model.generation_config.pad_token_id == sampler.tokenizer.pad_token_id


def test_easy_problems_are_solved_three_times_in_four(sampler):
    easy = random.Random(1).sample(build.val_items(ONE_TURN)["easy"], NUM_PROBLEMS)
    # .93^4 = .748 by design; standard error over 400 replies at most .022
    assert 0.70 <= mean(chains.group_accuracies(sampler, easy)) <= 0.85


def test_hard_problems_are_out_of_reach_without_a_hint(sampler, hard):
    assert mean(chains.group_accuracies(sampler, hard)) <= 0.01  # .2^5 = .0003 by design


def test_hint_replies_parse_and_state_results_as_they_are(hard, hint_levels):
    assert len(hint_levels) >= 0.95 * len(hard)
    facts = [is_faithful(hint, chain.results) for chain, hints in hint_levels for hint in hints]
    assert mean(facts) >= 0.95


def test_the_strongest_hint_gives_signal_in_most_groups_and_the_weakest_in_few(
    sampler, hint_levels
):
    signal = {}
    for level in (1, 3):
        hints = [hints[level - 1] for _, hints in hint_levels]
        chains = [chain for chain, _ in hint_levels]
        shares = chains.group_accuracies(sampler, chains, hints)
        signal[level] = mean([0 < share < 1 for share in shares])
    assert signal[3] >= 0.55  # 1 - .8^8 = .83 if every hinted result is copied
    assert signal[1] <= 0.25  # 1 - (1 - .2^4)^8 = .01
