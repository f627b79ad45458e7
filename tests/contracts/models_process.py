"""One model in the shape of a real one in vLLM and in transformers; prints how far they are apart.

Run by test_models.py: ``models_process.py FAMILY EMPTY_FOLDER [DTYPE]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from engines import ENGINE
from random_model import FAMILIES, build_model
from sync_process import perturb, sync
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import LLM, SamplingParams

from recipe.hint.adapter.chat_template import refuses_system
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import fold_system, load_texts

LENGTH = 40


def requests(folder: Path) -> list[list[int]]:
    """Token ids of hint requests: a system turn and a user turn, longer than Gemma's window."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    is_folded = refuses_system(tokenizer, {})
    found = []
    for number in range(3):
        messages = hint_request(
            load_texts({}, ""), f"How many are {number} + 7?", f"They are {number + 7}."
        )
        turns = fold_system(messages) if is_folded else messages
        found.append(
            tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
        )
    return found


def reference(model: torch.nn.Module, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Return transformers' log-probs of a response's tokens.

    In double precision: torch's fp32 ``log_softmax`` is off by 2e-5 with 260,000 tokens.
    """
    tokens = torch.tensor([[*prompt_ids, *ids]])
    with torch.no_grad():
        logits = model(tokens, logits_to_keep=len(ids) + 1).logits[0, :-1]
    return torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def sampled(llm: LLM, model: torch.nn.Module, asked: list[list[int]], stops: set[int]) -> Any:
    """Return differences of the tokens' probabilities, and where the responses ended."""
    sampling = SamplingParams(n=12, max_tokens=LENGTH, temperature=1.0, seed=5, logprobs=0)
    outputs = llm.generate([{"prompt_token_ids": ids} for ids in asked], sampling, use_tqdm=False)
    gaps, log_gaps, probs = [], [], []
    last, num_cut, num_inside = [], 0, 0
    for prompt_ids, output in zip(asked, outputs, strict=True):
        for response in output.outputs:
            ids = list(response.token_ids)
            pairs = zip(response.logprobs, ids, strict=True)
            reported = torch.tensor([row[token].logprob for row, token in pairs])
            expected = reference(model, prompt_ids, ids)
            gaps.append((reported.exp() - expected.exp()).abs())
            log_gaps.append((reported - expected).abs())
            probs.append(expected.exp())
            num_inside += sum(token in stops for token in ids[:-1])
            if response.finish_reason == "length":
                num_cut += len(ids) == LENGTH and ids[-1] not in stops
            else:
                last.append(ids[-1])
    gaps_T, log_gaps_T, probs_T = (torch.cat(each) for each in (gaps, log_gaps, probs))
    return {
        "max": gaps_T.max().item(),
        "mean": gaps_T.mean().item(),
        "log mean": log_gaps_T.mean().item(),
        "log max": log_gaps_T.max().item(),
        "mean probability": probs_T.mean().item(),
        "tokens": len(gaps_T),
        "last": sorted(set(last)),
        "stopped": len(last),
        "cut": num_cut,
        "inside": num_inside,
    }


def main(name: str, folder: Path, dtype: str = "float32") -> dict[str, Any]:
    torch.set_num_threads(1)
    build_model(folder, name)
    attention = "eager" if FAMILIES[name].model_type == "gemma2" else "sdpa"
    # A long prompt in pieces would rewind a seed, which the CPU cannot.
    whole = {"enable_chunked_prefill": False, "max_num_batched_tokens": 8192}
    options = ENGINE | whole | {"dtype": dtype, "max_model_len": 1024}
    llm = LLM(model=str(folder), seed=1, **options)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=getattr(torch, dtype), attn_implementation=attention
    ).eval()
    stops = {FAMILIES[name].special[each] for each in FAMILIES[name].stops}
    asked = requests(folder)
    found = {"stops": sorted(stops), "loaded": sampled(llm, model, asked, stops)}
    perturb(model, seed=1)
    found["not synced"] = sampled(llm, model, asked, stops)
    sync(llm, model)
    found["synced"] = sampled(llm, model, asked, stops)
    return found


if __name__ == "__main__":
    given = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    sys.stdout.write("\n" + json.dumps(main(*given)))
