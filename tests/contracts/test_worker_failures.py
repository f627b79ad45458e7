"""A queue that takes no word of an agent-loop worker ends the run, by name."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
import ray
import transfer_queue as tq
from ray.exceptions import GetTimeoutError
from test_worker_seams import MINIMAL, prompt_of, rolling_worker
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter.worker import HintManager
from recipe.run.errors import HintError, StallError


def test_a_failure_that_the_queue_does_not_take_is_the_answer_to_the_next_ping(monkeypatch):
    """Nobody awaits the coroutine of a prompt, so an error of its own would be told to nobody."""

    async def roll_out(self, parts, problem, prompt, step):
        raise ValueError("no room")

    async def put(keys, partition_id, tags):
        raise RuntimeError("no controller")

    worker, _ = rolling_worker(monkeypatch, roll_out)
    monkeypatch.setattr(tq, "async_kv_batch_put", put)

    async def run():
        await worker._run_prompt(prompt_of("p7"), {}, {"validate": False, "step": 3})
        await worker.ping()

    with pytest.raises(HintError, match=r"no controller.*; problem p7: ValueError: no room"):
        asyncio.run(run())


def test_workers_that_take_no_prompts_end_the_run_at_a_limit(monkeypatch):
    def get(calls, timeout):
        raise GetTimeoutError(f"nothing within {timeout}")

    monkeypatch.setattr(ray, "get", get)
    manager = HintManager(MINIMAL, None)
    call = SimpleNamespace(remote=lambda chunk: None)
    manager.agent_loop_workers = [SimpleNamespace(generate_sequences=call)]
    batch = tu.get_tensordict({"uid": np.array(["a", "b"], dtype=object)})
    with pytest.raises(StallError, match=r"did not take 2 prompts within .*answer_s=7 s"):
        manager.generate_sequences(batch)
