"""Syncs real weights into a real vLLM on the CPU and prints how far its log-probs are off.

Run by test_weight_sync.py: ``sync_process.py tied`` or ``sync_process.py untied EMPTY_FOLDER``.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import threading

import torch
from engines import BASE, ENGINE, prompts, reference_log_probs
from transformers import AutoModelForCausalLM
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightSender
from vllm import LLM, SamplingParams

from recipe.laptop.rollout import CpuWorkerExtension

BUCKET_MB = 1  # the model has 3.4 MB: several buckets


class SwitchableExtension(CpuWorkerExtension):
    """The real extension, and a way to leave out one of its steps."""

    is_repacking = True

    def set_repacking(self, is_repacking: bool) -> None:
        self.is_repacking = is_repacking

    def repack_tied_head(self) -> None:
        if self.is_repacking:
            super().repack_tied_head()


def perturb(model: torch.nn.Module, seed: int) -> None:
    """Every weight 5 % of its spread away: far more than one update, and still a language model."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight += 0.05 * weight.std() * noise


def sync(llm: LLM, model: torch.nn.Module, *, skip: tuple[str, ...] = ()) -> None:
    """What verl does at the end of a step: a sender here, the receiver in vLLM's worker."""
    [handle] = llm.collective_rpc("_get_zmq_handle")
    weights = {name: each for name, each in model.state_dict().items() if name not in skip}
    # A weight larger than a bucket ends the sender, and the receiver would wait for ever.
    largest_mb = max(each.nbytes for each in weights.values()) // 2**20 + 1
    sender = BucketedWeightSender(handle, bucket_size_mb=max(BUCKET_MB, largest_mb), use_shm=True)
    sending = sender.async_send_weights(iter(weights.items()))
    thread = threading.Thread(target=asyncio.run, args=(sending,))
    thread.start()
    options = {"peft_config": None, "base_sync_done": True, "use_shm": True}
    llm.collective_rpc("update_weights_from_ipc", kwargs=options)
    thread.join()
    llm.reset_prefix_cache()  # as verl does: it holds what the old weights computed


def difference(llm: LLM, model: torch.nn.Module) -> dict[str, float]:
    """Between the probabilities of sampled tokens, vLLM's and transformers'."""
    asked = prompts(4)
    sampling = SamplingParams(n=4, max_tokens=32, temperature=1.0, seed=5, logprobs=0)
    gaps = []
    outputs = llm.generate([{"prompt_token_ids": ids} for ids in asked], sampling, use_tqdm=False)
    for prompt_ids, output in zip(asked, outputs, strict=True):
        for answer in output.outputs:
            pairs = zip(answer.logprobs, answer.token_ids, strict=True)
            reported = torch.tensor([row[token].logprob for row, token in pairs])
            expected = torch.tensor(reference_log_probs(model, prompt_ids, answer.token_ids))
            gaps.append((reported.exp() - expected.exp()).abs())
    gaps_T = torch.cat(gaps)
    return {
        "max": gaps_T.max().item(),
        "mean": gaps_T.mean().item(),
        "tokens": len(gaps_T),
    }


def tied() -> dict[str, dict[str, float]]:
    """The embedded model: its head is its embedding."""
    llm, model = start(str(BASE))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    found = {"as loaded": difference(llm, model)}
    perturb(model, seed=1)
    found["not synced"] = difference(llm, model)
    sync(llm, model)
    found["sent under both names"] = difference(llm, model)
    perturb(model, seed=2)
    llm.collective_rpc("set_repacking", args=(False,))
    sync(llm, model, skip=("lm_head.weight",))
    found["head not repacked"] = difference(llm, model)
    llm.collective_rpc("set_repacking", args=(True,))
    sync(llm, model, skip=("lm_head.weight",))
    found["sent once"] = difference(llm, model)
    return found


def untied(folder: str) -> dict[str, dict[str, float]]:
    """The same model with a head of its own."""
    model = AutoModelForCausalLM.from_pretrained(
        BASE, dtype=torch.float32, tie_word_embeddings=False
    )
    head = torch.nn.Parameter(model.model.embed_tokens.weight.detach().clone())
    model.lm_head.weight = head
    perturb(model.lm_head, seed=3)
    model.save_pretrained(folder)
    for path in BASE.glob("*token*"):
        shutil.copy(path, folder)
    llm, model = start(folder)
    assert model.lm_head.weight is not model.model.embed_tokens.weight
    found = {"as loaded": difference(llm, model)}
    perturb(model, seed=1)
    found["not synced"] = difference(llm, model)
    sync(llm, model)
    found["synced"] = difference(llm, model)
    return found


def start(folder: str) -> tuple[LLM, torch.nn.Module]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options = ENGINE | {"worker_extension_cls": "sync_process.SwitchableExtension"}
    return LLM(model=folder, seed=1, **options), model


if __name__ == "__main__":
    result = tied() if sys.argv[1] == "tied" else untied(sys.argv[2])
    sys.stdout.write("\n" + json.dumps(result))
