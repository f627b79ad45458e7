"""How many problems are under way: twice the responses that all engines take at once."""

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.engine import problems_in_flight
from recipe.hint.adapter.worker import validation_slots


def config(mode="sync", *, dp=1, tp=1, eval_only=False, max_num_seqs=64, workers=2):
    """Two nodes of eight devices train; with ``separate_async`` one of four rolls out."""
    rollout = {
        **{"nnodes": 1, "n_gpus_per_node": 4, "max_num_seqs": max_num_seqs},
        **{"tensor_model_parallel_size": tp, "pipeline_model_parallel_size": 1},
        **{"data_parallel_size": dp, "val_kwargs": {"n": 8}, "agent": {"num_workers": workers}},
    }
    trainer = {"nnodes": 2, "n_gpus_per_node": 8, "v1": {"trainer_mode": mode}}
    return OmegaConf.create(
        {
            "trainer": trainer | {"eval_only": eval_only},
            "hint": {"max_in_flight": 128},
            "actor_rollout_ref": {"rollout": rollout},
        }
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 256),  # 2 x 64 x 16 engines / 8 responses
        ({"tp": 4}, 64),  # 2 x 64 x 4 / 8
        ({"tp": 4, "dp": 2}, 64),  # 2 replicas of 2 engines: 2 x 64 x 4 / 8
        ({"mode": "separate_async"}, 320),  # the trainer's 16 too: 2 x 64 x 20 / 8
        ({"mode": "separate_async", "eval_only": True}, 256),
        ({"tp": 16, "max_num_seqs": 1}, 1),  # 2 / 8, at least one
    ],
)
def test_all_engines_have_twice_what_they_take_at_once(given, expected):
    assert problems_in_flight(config(**given)) == expected


def test_the_workers_share_them_up_to_their_own_limit():
    assert validation_slots(config(tp=4)) == 32  # 64 / 2
    assert validation_slots(config(workers=1)) == 128  # 256, at most max_in_flight
    assert validation_slots(config(tp=16, workers=64)) == 1
