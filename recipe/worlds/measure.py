"""What the base can do: accuracy with and without hints, and the quality of its hints."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import Message, with_hint
from recipe.run.errors import DataError
from recipe.worlds.corpus import TEXTS, question
from recipe.worlds.task import NUM_LEVELS, Chain, boxed_code, is_faithful, read_hint_response

GROUP_SIZE = 8
MAX_RESPONSE_TOKENS = 64
CHUNK = 400


@dataclass(frozen=True, slots=True)
class Sampler:
    """A model with its tokenizer; sampling is at the full distribution unless greedy."""

    model: Any  # a transformers model that generates
    tokenizer: PreTrainedTokenizerFast
    seed: int = 0

    def responses(
        self, conversations: Sequence[list[Message]], *, greedy: bool = False
    ) -> list[str]:
        """Return one response per conversation, of at most ``MAX_RESPONSE_TOKENS`` tokens."""
        texts: list[str] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            for first in range(0, len(conversations), CHUNK):
                texts += self._chunk(list(conversations[first : first + CHUNK]), greedy)
        return texts

    @torch.inference_mode()
    def _chunk(self, conversations: list[list[Message]], greedy: bool) -> list[str]:
        inputs: Any = self.tokenizer.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        choice: dict[str, Any] = {"do_sample": False} if greedy else {"do_sample": True, "top_k": 0}
        ids = self.model.generate(**inputs, **choice, max_new_tokens=MAX_RESPONSE_TOKENS)
        response_ids = ids[:, inputs["input_ids"].shape[1] :]
        return self.tokenizer.batch_decode(response_ids, skip_special_tokens=True)


def group_accuracies(
    sampler: Sampler, chains: Sequence[Chain], hints: Sequence[str] = ()
) -> list[float]:
    """Return each problem's share of right responses in a group, under its hint if any."""
    conversations = [question(chain.problem) for chain in chains]
    if hints:
        pairs = zip(conversations, hints, strict=True)
        conversations = [with_hint(messages, hint, TEXTS) for messages, hint in pairs]
    texts = sampler.responses([messages for messages in conversations for _ in range(GROUP_SIZE)])
    accuracies = []
    for index, chain in enumerate(chains):
        group = texts[index * GROUP_SIZE : (index + 1) * GROUP_SIZE]
        accuracies.append(mean([boxed_code(text) == chain.answer for text in group]))
    return accuracies


def written_hints(sampler: Sampler, chains: Sequence[Chain]) -> list[tuple[Chain, tuple[str, ...]]]:
    """Pair each problem with the hints the model writes for it; unreadable ones are left out."""
    requests = [hint_request(TEXTS, chain.problem, chain.solution) for chain in chains]
    written = []
    for chain, response in zip(chains, sampler.responses(requests), strict=True):
        try:
            written.append((chain, read_hint_response(response)))
        except DataError:
            continue
    return written


def quality(sampler: Sampler, chains: Mapping[str, Sequence[Chain]]) -> dict[str, float]:
    """Return the advertised numbers, all shares in [0, 1], at T=1 with one group per problem.

    ``*_signal`` is the share of groups whose responses differ (some right, some wrong);
    ``level_*`` are about hard problems under hints the model wrote itself.
    """
    easy, hard = chains["easy"], chains["hard"]
    unhinted = group_accuracies(sampler, hard)
    greedy = sampler.responses([question(chain.problem) for chain in hard], greedy=True)
    written = written_hints(sampler, hard)
    report = {
        "easy_accuracy": mean(group_accuracies(sampler, easy)),
        "hard_accuracy": mean(unhinted),
        "hard_greedy_accuracy": mean(
            [boxed_code(text) == chain.answer for text, chain in zip(greedy, hard, strict=True)]
        ),
        "hard_signal": mean([0 < share < 1 for share in unhinted]),
        "hint_parse": len(written) / len(hard),
        "hint_nested": mean([_is_nested(hints) for _, hints in written]),
    }
    for level in range(1, NUM_LEVELS + 1):
        hints = [hints_L[level - 1] for _, hints_L in written]
        shares = group_accuracies(sampler, [chain for chain, _ in written], hints)
        report[f"level_{level}_faithful"] = mean(
            [is_faithful(hints_L[level - 1], chain.results) for chain, hints_L in written]
        )
        report[f"level_{level}_accuracy"] = mean(shares)
        report[f"level_{level}_signal"] = mean([0 < share < 1 for share in shares])
    return {name: round(value, 4) for name, value in report.items()}


def _is_nested(hints: Sequence[str]) -> bool:
    sets = [set(hint.split(", ")) for hint in hints]
    return all(low <= high for low, high in itertools.pairwise(sets))


def mean(values: Sequence[float]) -> float:
    """Return the mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
