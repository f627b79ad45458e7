"""The rollout server of a benchmark: it counts, and it can answer the same requests once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from vllm import SamplingParams
from vllm.inputs import TokensPrompt
from vllm.sampling_params import RequestOutputKind

from recipe.hint.adapter.rollout_server import GroupHttpServer, GroupReplica


class BenchHttpServer(GroupHttpServer):
    """Remembers the requests of one step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._requests: list[tuple[Sequence[int], dict[str, Any]]] = []
        self._num_cached = 0
        self._cpu_s = time.process_time()
        self._last_time = 0.0
        self._first_time = 0.0

    async def generate_group(
        self,
        prompt_ids: Sequence[int],
        sampling: dict[str, Any],
        request_id: str,
        limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Do as the parent does, and count."""
        self._first_time = self._first_time or time.time()
        self._requests.append((prompt_ids, sampling))
        output = await super().generate_group(prompt_ids, sampling, request_id, limit_s)
        self._num_cached += output["cached_tokens"]
        self._last_time = time.time()
        return output

    async def take_counts(self) -> dict[str, float]:
        """Return what was counted since the last call, with its first and last moment."""
        cpu_s, self._cpu_s = time.process_time() - self._cpu_s, time.process_time()
        counts = {
            "prompt_tokens": sum(len(prompt_ids) for prompt_ids, _ in self._requests),
            "cached_tokens": self._num_cached,
            "server_cpu_s": cpu_s,
            "first_time": self._first_time,
            "last_time": self._last_time,
        }
        self._requests, self._num_cached, self._first_time = [], 0, 0.0
        return counts

    async def replay_alone(self) -> tuple[int, float]:
        """Send the remembered requests at once, straight to vLLM; return tokens and seconds."""
        requests, cpu_s = list(self._requests), time.process_time() - self._cpu_s
        await self.clear_kv_cache()
        start = time.perf_counter()
        counts = await asyncio.gather(
            *(self._alone(list(ids), sampling) for ids, sampling in requests)
        )
        seconds = time.perf_counter() - start
        await self.clear_kv_cache()
        self._cpu_s = time.process_time() - cpu_s  # as if this had not been
        return sum(counts), seconds

    async def _alone(self, prompt_ids: list[int], sampling: dict[str, Any]) -> int:
        params = SamplingParams(
            **sampling, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY
        )
        prompt = TokensPrompt(prompt_token_ids=prompt_ids)
        count = 0
        async for output in self.engine.generate(prompt, params, uuid4().hex):
            count = sum(len(response.token_ids) for response in output.outputs)
        return count


class BenchReplica(GroupReplica):
    """The project's replica, served by :class:`BenchHttpServer`."""

    http_server = BenchHttpServer
