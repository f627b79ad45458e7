"""How many problems are under way: twice the responses that all engines take at once."""

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.engine import problems_in_flight


def config(*, dp=1, tp=1, max_num_seqs=64):
    """Two nodes of eight devices."""
    rollout = {
        **{"max_num_seqs": max_num_seqs, "data_parallel_size": dp, "val_kwargs": {"n": 8}},
        **{"tensor_model_parallel_size": tp, "pipeline_model_parallel_size": 1},
    }
    nodes = {"nnodes": 2, "n_gpus_per_node": 8}
    return OmegaConf.create({"trainer": nodes, "actor_rollout_ref": {"rollout": rollout}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 256),  # 2 x 64 x 16 engines / 8 responses
        ({"tp": 4}, 64),  # 2 x 64 x 4 / 8
        ({"tp": 4, "dp": 2}, 64),  # 2 replicas of 2 engines: 2 x 64 x 4 / 8
        ({"tp": 16, "max_num_seqs": 1}, 1),  # 2 / 8, at least one
    ],
)
def test_all_engines_have_twice_what_they_take_at_once(given, expected):
    assert problems_in_flight(config(**given)) == expected
