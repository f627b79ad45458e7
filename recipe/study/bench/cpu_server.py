"""Plain verl on a CPU: loaded in every process, it puts the package's rollout server in place."""

from verl.workers.rollout.replica import RolloutReplicaRegistry


def _replica() -> type:
    from recipe.hint.adapter.rollout_server import GroupReplica  # seconds: only where it is used

    return GroupReplica


RolloutReplicaRegistry.register("vllm", _replica)
