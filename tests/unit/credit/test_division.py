"""How verl divides a loss that is summed in micro-batches of padded rows."""

import pytest
import torch
from verl.trainer.ppo.core_algos import agg_loss


def total(micro_batches, **options):
    """The loss of rows of ones, by their lengths, each micro-batch as wide as its longest row."""
    loss = 0.0
    for lengths in micro_batches:
        mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
        ones = torch.ones(mask.shape)
        size = sum(map(len, micro_batches))
        mode = "seq-mean-token-sum-norm"
        loss += agg_loss(ones, mask.float(), mode, global_batch_size=size, **options).item()
    return loss


def test_without_a_scale_factor_a_row_weighs_what_its_neighbours_are_long():
    # Rows of 1 and 3 tokens: (1 + 3) / 2 rows / 3 wide, or 1/2/1 + 3/2/3 apart.
    assert total([[1, 3]]) == pytest.approx(4 / 2 / 3)
    assert total([[1], [3]]) == pytest.approx(1 / 2 / 1 + 3 / 2 / 3)


def test_with_a_scale_factor_the_cut_into_micro_batches_changes_nothing():
    # (1 + 3) / 2 rows / 4.
    assert total([[1, 3]], loss_scale_factor=4) == pytest.approx(0.5)
    assert total([[1], [3]], loss_scale_factor=4) == pytest.approx(0.5)
