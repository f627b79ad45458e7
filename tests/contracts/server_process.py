"""Groups from a real vLLM behind the project's rollout server, printed as JSON.

Run by test_rollout_server.py. The server is built without its Ray actor; everything that
``generate_group`` and verl's gate touch is set here as verl's constructor sets it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import torch
from engines import BASE, ENGINE, prompts, reference_log_probs
from transformers import AutoModelForCausalLM
from verl.workers.config import HFModelConfig
from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.outputs import RequestOutput
from vllm.v1.engine.async_llm import AsyncLLM

from recipe.hint.adapter.group_client import GroupClient, Sampling
from recipe.hint.adapter.rollout_server import GroupHttpServer

SAMPLING = {"n": 4, "max_tokens": 24, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "seed": 11}
LONG = SAMPLING | {"max_tokens": 1500, "ignore_eos": True}  # seconds
VERSION = 7


class Watched(AsyncLLM):
    """The engine, and what it was asked and answered."""

    asked: list[SamplingParams]
    outputs: list[RequestOutput]

    async def add_request(
        self, request_id: str, prompt: Any, params: SamplingParams, **more: Any
    ) -> Any:
        collector = await super().add_request(request_id, prompt, params, **more)
        self.asked.append(params)
        put = collector.put

        def watched(output: RequestOutput) -> None:
            self.outputs.append(output)
            put(output)

        collector.put = watched
        return collector


async def build() -> GroupHttpServer:
    server = GroupHttpServer.__new__(GroupHttpServer)
    options = ENGINE | {"max_model_len": 2048}
    server.engine = Watched.from_engine_args(AsyncEngineArgs(model=str(BASE), **options))
    server.engine.asked, server.engine.outputs = [], []
    server.model_config = HFModelConfig(path=str(BASE))
    server.node_rank = 0
    server._submission_paused = server._rejecting = False
    server._admitting = 0
    server._resume_event = asyncio.Event()
    server._resume_event.set()
    await server.set_global_steps(VERSION)
    return server


async def sampled(server: GroupHttpServer, prompt_ids: list[int]) -> dict[str, Any]:
    group = await server.generate_group(prompt_ids, SAMPLING, "group")
    [asked], [output] = server.engine.asked, server.engine.outputs
    found = {
        "group": group,
        "output kind": asked.output_kind.name,
        "texts": [answer.text for answer in output.outputs],
        "group again": await server.generate_group(prompt_ids, SAMPLING, "again"),
    }
    # vLLM gives answer i the seed of the request plus i.
    found["one by one"] = [
        (await server.generate_group(prompt_ids, one, f"one-{one['seed']}"))["token_ids"][0]
        for one in (SAMPLING | {"n": 1, "seed": SAMPLING["seed"] + i} for i in range(4))
    ]
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32).eval()
    found["reference"] = [
        reference_log_probs(model, prompt_ids, token_ids) for token_ids in group["token_ids"]
    ]
    return found


async def stopped(server: GroupHttpServer, prompt_ids: list[int]) -> dict[str, Any]:
    """A weight sync in the middle of a group, a request that meets a closed gate, the resume."""
    already = len(server.engine.asked)
    running = asyncio.create_task(server.generate_group(prompt_ids, LONG, "long"))
    while len(server.engine.asked) < already + 1:
        await asyncio.sleep(0.01)
    await server.abort_all_requests()
    found: dict[str, Any] = {"stopped": await running}
    parked = asyncio.create_task(server.generate_group(prompt_ids, SAMPLING, "parked"))
    await asyncio.sleep(0.1)
    found["parked"] = not parked.done()
    await server.resume_generation()
    found["resumed"] = await parked
    await server.abort_all_requests(reject_request=True)
    found["rejected"] = await server.generate_group(prompt_ids, SAMPLING, "rejected")
    await server.resume_generation()
    return found | {"admitting at the end": server._admitting}


class Balancer:
    """The two calls of verl's client that a group goes through, for one server in this process."""

    def __init__(self, server: GroupHttpServer) -> None:
        def ask(requests: list[tuple[Any, dict[str, Any], str]], limit_s: float) -> Any:
            longest = [(ids, fields | {"ignore_eos": True}, name) for ids, fields, name in requests]
            return server.generate_groups(longest, limit_s)

        self._server = SimpleNamespace(generate_groups=SimpleNamespace(remote=ask))

    async def _acquire_server(self, request_id: str, **_: Any) -> tuple[str, Any]:
        return "server", self._server

    def _release_server(self, server_id: str, request_id: str) -> None:
        pass


async def gone_on(server: GroupHttpServer, prompt_ids: list[int]) -> dict[str, Any]:
    """A group through three weight syncs, which bring the same weights under a new version."""
    client = GroupClient(Balancer(server), max_model_len=2048, timeout_s=600)
    sampling = Sampling(n=4, max_tokens=1200, temperature=1.0)
    going = asyncio.create_task(client.sample_each([prompt_ids], sampling, [5]))
    for version in range(VERSION + 1, VERSION + 4):
        states = server.engine.output_processor.request_states
        while not any(each.detokenizer.num_output_tokens() for each in states.values()):
            await asyncio.sleep(0.01)
        await server.abort_all_requests()
        await server.set_global_steps(version)
        await server.resume_generation()
    [group] = await going
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32).eval()
    references = [reference_log_probs(model, prompt_ids, each.token_ids_T) for each in group]
    return {"gone on": [asdict(each) for each in group], "gone on reference": references}


async def main() -> dict[str, Any]:
    server = await build()
    [prompt_ids] = prompts(1)
    found = await sampled(server, prompt_ids) | await stopped(server, prompt_ids)
    found |= await gone_on(server, prompt_ids)
    server.engine.shutdown()
    return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(asyncio.run(main()), default=list))
