"""The committed bases do what ``BASE.json`` advertises, on a sample of the held-out problems.

Only another base or another torch changes what they sample: unit/worlds/test_worlds.py compares
their files with their hashes.
"""

import json
import random

import pytest
import torch

from recipe import REPOSITORY
from recipe.worlds import build, chains, two_turn
from recipe.worlds.base import mean
from recipe.worlds.build import ONE_TURN, TWO_TURN
from recipe.worlds.chains import group_accuracies, is_faithful

pytestmark = pytest.mark.long
TINY = REPOSITORY / "data/tiny"


@pytest.fixture(scope="module")
def sampler():
    return build.load_base(TINY / "base")


def held_out(family):
    return random.Random(1).sample(ONE_TURN.items(family)[1], 50)


def test_the_base_has_the_advertised_size_and_plain_sampling(sampler):
    facts = json.loads((TINY / build.FACTS_NAME).read_text())
    model = sampler.model
    assert model.num_parameters() == facts["parameters"] < 1_000_000
    assert (model.config.model_type, model.dtype) == ("llama", torch.float32)
    assert model.config.vocab_size == len(sampler.tokenizer) == facts["vocabulary"]
    assert model.generation_config.eos_token_id == sampler.tokenizer.eos_token_id


def test_easy_problems_are_solved_three_times_in_four_and_hard_ones_never(sampler):
    # .93^4 = .748 by design; standard error over 400 replies at most .022
    assert 0.70 <= mean(group_accuracies(sampler, held_out("easy"))) <= 0.85
    assert mean(group_accuracies(sampler, held_out("hard"))) <= 0.01  # .2^5 = .0003 by design


def test_written_hints_are_true_and_the_strongest_gives_signal_in_most_groups(sampler):
    written = chains.written_hints(sampler, held_out("hard"))
    assert len(written) >= 0.95 * 50
    assert (
        mean([is_faithful(hint, each.results) for each, hints in written for hint in hints]) > 0.95
    )
    signal = {}
    for level in (1, 3):
        hints = [hints[level - 1] for _, hints in written]
        shares = group_accuracies(sampler, [chain for chain, _ in written], hints)
        signal[level] = mean([0 < share < 1 for share in shares])
    assert signal[3] >= 0.55  # 1 - .8^8 = .83 if every hinted result is copied
    assert signal[1] <= 0.25  # 1 - (1 - .2^4)^8 = .01


def test_the_two_turn_base_guesses_its_box_knows_its_work_and_seldom_reads_it():
    hard = TWO_TURN.items("hard")[1][:60]
    base = build.load_base(REPOSITORY / TWO_TURN.folder / "base")
    rates = two_turn.rates(two_turn.play(base, hard))
    # 480 conversations: standard errors at most .014, .010, .023 and .011
    assert 0.05 <= rates["turn_1"] <= 0.17  # one digit in ten
    assert 0.01 <= rates["fix"] <= 0.09  # .04 by design
    assert 0.60 <= rates["same_box"] <= 0.80
    assert rates["work"] >= 0.90  # .985^4 = .94 by design
