"""The way from a trainer's worker to the vLLM beside it, which no other run may share.

verl names the socket by Ray's job, and the first job of every cluster has the same number. Of two
runs on one machine, each with a Ray of its own, one could wait forever, or take the weights of the
other.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import ray
from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter

from recipe.run.environment import RUN_VARIABLE


def job_name() -> str:
    """Return the name of this run's sockets: Ray's job and, in a run, its folder."""
    job, folder = ray.get_runtime_context().get_job_id(), os.environ.get(RUN_VARIABLE)
    return f"{job}-{hashlib.sha256(folder.encode()).hexdigest()[:12]}" if folder else job


class RunServerAdapter(ServerAdapter):
    """verl's sender, with a socket that only this run uses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        job = ray.get_runtime_context().get_job_id()
        self.zmq_handle = self.zmq_handle.replace(f"-{job}-", f"-{job_name()}-", 1)
