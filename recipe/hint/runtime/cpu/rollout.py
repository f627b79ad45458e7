"""Weight reload for vLLM's CPU build, whose kernels repack the weights after loading."""

from __future__ import annotations

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightReceiver
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm


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

        receiver = BucketedWeightReceiver(
            self._get_zmq_handle(), device=torch.device("cpu"), use_shm=use_shm
        )
        receiver.receive_weights(keep)
        self.model_runner.reload_weights(weights_iterator=iter(received))
        self.repack_tied_head()

    def repack_tied_head(self) -> None:
        """Pack ``lm_head`` anew from the embedding it shares.

        With tied embeddings the reload leaves the head's packed copy of the OLD embedding in
        place, and generation drifts from the trainer without a word.
        """
        model = self.model_runner.model
        if model.config.tie_word_embeddings:
            dispatch_cpu_unquantized_gemm(model.lm_head, remove_weight=False)
