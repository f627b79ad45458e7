"""verl's vLLM replica with one call per group: G responses to one prompt, one shared prefill."""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import Sequence
from typing import Any

import ray
from verl.utils.device import get_device_name
from verl.workers.rollout.replica import RolloutReplicaRegistry
from verl.workers.rollout.vllm_rollout.utils import VLLM_LORA_INT_ID, VLLM_LORA_NAME, VLLM_LORA_PATH
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica
from vllm import SamplingParams
from vllm.inputs import TokensPrompt
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind

from recipe.hint.adapter.weight_sender import job_name
from recipe.run.together import gather_or_cancel

CPU_EXTENSION = "recipe.laptop.rollout.CpuWorkerExtension"


class GroupHttpServer(vLLMHttpServer):
    """Adds :meth:`generate_groups`, and takes weights of its own run alone; the rest is verl's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        os.environ["VERL_RAY_JOB_ID"] = job_name()  # for vLLM's processes

    async def generate_groups(
        self, asked: list[tuple[Sequence[int], dict[str, Any], str]], limit_s: float | None = None
    ) -> list[dict[str, Any]]:
        """Return :meth:`generate_group` of several prompts, each with fields and id of its own."""
        return await gather_or_cancel(self.generate_group(*each, limit_s) for each in asked)

    async def generate_group(
        self,
        prompt_ids: Sequence[int],
        sampling: dict[str, Any],
        request_id: str,
        limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Sample ``sampling["n"]`` responses, G, to one prompt.

        ``sampling`` has fields of vLLM's SamplingParams. ``limit_s`` is for the whole group, from
        its admission on: the time in which a weight update keeps the server closed does not count.

        Returns:
            ``token_ids`` and ``log_probs``, both G arrays of T; ``finish`` (G reasons, or
            "abort" for a response stopped by a weight update, with the tokens it had);
            ``global_steps``, the version of the weights.

        Raises:
            TimeoutError: If the group is not done after ``limit_s``.
        """
        count = sampling["n"]
        # Before the gate: an error after it would leave the request admitted forever.
        kind = RequestOutputKind.FINAL_ONLY
        params = SamplingParams(**sampling, logprobs=0, detokenize=False, output_kind=kind)
        prompt = TokensPrompt(prompt_token_ids=list(prompt_ids))
        if await self._park_until_admitted(request_id) is not None:
            return self._aborted(count)
        # What is admitted is stopped before the next version comes.
        version = self.global_steps
        try:
            async with asyncio.timeout(limit_s):
                final = await self._final(request_id, prompt, params)
        except (asyncio.CancelledError, TimeoutError):
            # By our id: vLLM may know the group, or a part of it, before it tells its own.
            await self.engine.abort(request_id)
            raise
        if len(final.outputs) < count:
            return self._aborted(count)
        responses = sorted(final.outputs, key=lambda response: response.index)
        if any(response.finish_reason == "error" for response in responses):
            raise RuntimeError("vLLM ended a response with an error of its own; its log says why")
        pairs = [zip(each.logprobs, each.token_ids, strict=True) for each in responses]
        return {
            "token_ids": [array("q", each.token_ids) for each in responses],
            "log_probs": [array("d", (row[id_].logprob for row, id_ in each)) for each in pairs],
            "finish": [each.finish_reason or "abort" for each in responses],
            "global_steps": version,
        }

    async def _final(self, request_id: str, prompt: TokensPrompt, params: SamplingParams) -> Any:
        """Hand an admitted request to vLLM, and return its finished output."""
        try:
            lora = None
            # The adapter that the trainer syncs, once it is there, as in verl.
            if self.lora_as_adapter and VLLM_LORA_INT_ID in await self.engine.list_loras():
                lora = LoRARequest(VLLM_LORA_NAME, VLLM_LORA_INT_ID, VLLM_LORA_PATH)
            queue = await self.engine.add_request(request_id, prompt, params, lora_request=lora)
        finally:
            # Admitted: from here on a weight update may stop it. `engine.generate` would tell
            # only with its first output, which for FINAL_ONLY is the last.
            self._admitting -= 1
        while True:
            output = queue.get_nowait() or await queue.get()
            if output.finished:
                return output

    def _aborted(self, count: int) -> dict[str, Any]:
        return {
            "token_ids": [array("q")] * count,
            "log_probs": [array("d")] * count,
            "finish": ["abort"] * count,
            "global_steps": self.global_steps,
        }

    def _get_worker_extension_cls(self) -> str:
        return CPU_EXTENSION if get_device_name() == "cpu" else super()._get_worker_extension_cls()


class GroupReplica(vLLMReplica):
    """verl's replica, served by :class:`GroupHttpServer`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(GroupHttpServer)

    @property
    def max_concurrency(self) -> int:
        # Requests have their own limits. A call that syncs weights or asks whether the server
        # answers must not wait behind them. verl's own 1,000 are too few on a large cluster.
        return 2**14


def register() -> None:
    """Make ``rollout.name=vllm`` mean this replica in this process."""
    RolloutReplicaRegistry.register("vllm", lambda: GroupReplica)
