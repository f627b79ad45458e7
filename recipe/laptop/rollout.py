"""vLLM's CPU build as a rollout: weights that it reloads, and log-probabilities that are exact."""

from __future__ import annotations

import functools
from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightReceiver
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
from vllm.model_executor.models.utils import WeightsMapper
from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """Receives verl's weights and loads them the way vLLM reloads a checkpoint."""

    model_runner: Any  # of vLLM's worker, which gets this class as a further base

    def update_weights_from_ipc(
        self, peft_config: dict | None = None, base_sync_done: bool = False, use_shm: bool = False
    ) -> None:
        """Take one full set of weights from the trainer, or a LoRA adapter as verl does.

        Plain ``load_weights`` fails here: after the first load the parameters have been
        replaced by packed ones, and with them the loader functions are gone.
        """
        if peft_config and base_sync_done:
            super().update_weights_from_ipc(peft_config, base_sync_done, use_shm)
            return
        received: list[tuple[str, torch.Tensor]] = []

        def keep(weights: list[tuple[str, torch.Tensor]], is_last: bool) -> None:
            received.extend((name, weight.clone()) for name, weight in weights)

        handle, cpu = self._get_zmq_handle(), torch.device("cpu")
        BucketedWeightReceiver(handle, device=cpu, use_shm=use_shm).receive_weights(keep)
        model = self.model_runner.model
        if model.config.tie_word_embeddings and not hasattr(model, "lm_head"):
            # The trainer names its tied head, Gemma 2 in vLLM has none: it is the embedding.
            received = [(name, weight) for name, weight in received if name != "lm_head.weight"]
        self.model_runner.reload_weights(weights_iterator=iter(received))
        self.repack_tied_head()

    def repack_tied_head(self) -> None:
        """Pack ``lm_head`` again from the embedding it shares.

        With tied embeddings the reload leaves the head's packed copy of the OLD embedding in
        place, and generation silently drifts from the trainer.
        """
        model = self.model_runner.model
        if model.config.tie_word_embeddings:
            head = getattr(model, "lm_head", None) or model.model.embed_tokens
            dispatch_cpu_unquantized_gemm(head, remove_weight=False)


# The build's own draws the noise of seeded rows twice, which counts with a real vocabulary.
_sampled = TopKTopPSampler.forward_native


@functools.wraps(_sampled)
def _normalized(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Make the sampled tokens' log-probabilities sum to one.

    torch's ``log_softmax`` adds up in fp32 on the CPU and is off by 2e-5 with 256,000 tokens, all
    in one direction; its ``logsumexp``, which verl's trainer uses, is not.
    """
    tokens, log_probs = _sampled(self, *args, **kwargs)
    if log_probs is not None and self.logprobs_mode == "processed_logprobs":
        log_probs -= torch.logsumexp(log_probs, dim=-1, keepdim=True)
    return tokens, log_probs


TopKTopPSampler.forward_cpu = _normalized
# verl 0.9.1 asks for a LoRA adapter's mapper by another name than vLLM 0.29, the CPU's, has.
if hasattr(WeightsMapper, "get_rename_mapper"):
    WeightsMapper.get_unstacked_mapper = WeightsMapper.get_rename_mapper  # pyright: ignore
