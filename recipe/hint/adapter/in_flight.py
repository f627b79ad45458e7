"""How many problems of a validation or an evaluation are under way at the same time."""

from __future__ import annotations

from omegaconf import DictConfig

from recipe.run.config import rollout_devices, world_size


def problems_in_flight(config: DictConfig) -> int:
    """Return how many problems have twice the responses that vLLM takes at once.

    The second half waits in vLLM's own queue, so that no slot stays empty.
    ``max_num_seqs`` holds for each engine, of which a replica has ``data_parallel_size``. A
    validation has the trainer's own replicas beside those of ``separate_async``.
    """
    rollout = config.actor_rollout_ref.rollout
    devices = world_size(config) + rollout_devices(config)
    of_engine = rollout.tensor_model_parallel_size * rollout.pipeline_model_parallel_size
    at_once = rollout.max_num_seqs * (devices // of_engine)
    return max(1, 2 * at_once // rollout.val_kwargs.n)
