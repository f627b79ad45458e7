"""A policy small enough to enumerate, played through the real rollout loop in every way there is.

A token is a character, so a conversation's tokens are its text. A response is one of a few words;
the policy is a table with one softmax for each (conversation, beginning of a word), random and of
its own for every conversation. :func:`every_outcome` runs ``PromptRollout`` once for each sequence
of draws that can happen, and says with which probability it does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from fakes import Numbered, OneByOne, problem

from recipe.hint.hints.base import HintSource, WrittenText
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Texts, fill, with_hint
from recipe.hint.record import Outcome
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict

PROBLEM = problem()
LATE = 1000  # after every cold start and warm-up


@dataclass(frozen=True)
class Words:
    """The responses there are. None is the beginning of another one, so that a word has an end.

    ``scores`` are accuracies by word; ``texts`` what a word says where it is not itself.
    """

    scores: dict[str, float]
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, word):
        return self.texts.get(word, word)

    def right(self, word):
        return self.scores[word] > 0


# One right word; the wrong ones are of both lengths.
THREE = Words({"a": 0.0, "ba": 1.0, "bb": 0.0})
# The first token decides nothing, the second everything.
TWO = Words({"ab": 0.0, "aa": 1.0})


class Policy:
    """A softmax over next tokens for each conversation and beginning of a word, in float64.

    Its parameters come to be when they are first read, drawn from ``seed`` and their own name. A
    conversation may end with the beginning of a word: what follows has the parameters of the word.
    """

    def __init__(self, words: Words, seed: int = 0) -> None:
        self.words = words
        self.seed = seed
        self.parameters: dict[tuple[str, str], torch.Tensor] = {}
        self._chances: dict[str, list[float]] = {}

    def words_after(self, conversation: str) -> list[str]:
        """Return what can be said: all words, or the ends of those that were begun."""
        _, begun = _begun(conversation)
        longer = (word for word in self.words.scores if word.startswith(begun))
        return [word[len(begun) :] for word in longer if word != begun]

    def token_log_probs(self, conversation: str, word: str) -> torch.Tensor:
        """Return log p of each token of a word, shape (T,)."""
        before, begun = _begun(conversation)
        return torch.stack(
            [
                self._logits(before, begun + word[:place]).log_softmax(0)[
                    self._tokens(begun + word[:place]).index(word[place])
                ]
                for place in range(len(word))
            ]
        )

    def token_entropies(self, conversation: str, word: str) -> torch.Tensor:
        """Return the entropy of each token's distribution, without a gradient, shape (T,)."""
        before, begun = _begun(conversation)
        logs = [
            self._logits(before, begun + word[:place]).detach().log_softmax(0)
            for place in range(len(word))
        ]
        return torch.stack([-(each.exp() * each).sum() for each in logs])

    def prob(self, conversation: str, word: str) -> torch.Tensor:
        """Return the probability of a word."""
        return self.token_log_probs(conversation, word).sum().exp()

    def chances(self, conversation: str) -> list[float]:
        """Return the probabilities of ``words_after`` as numbers, in their order."""
        if conversation not in self._chances:
            probs = [
                self.prob(conversation, each).item() for each in self.words_after(conversation)
            ]
            self._chances[conversation] = probs
        return self._chances[conversation]

    def mean(self, conversation: str, value: Callable[[str], float | torch.Tensor]):
        """Return the expectation of ``value(word)``."""
        return sum(self.prob(conversation, word) * value(word) for word in self.words.scores)

    def over(self, conversation: str, value: Callable[[str], float | torch.Tensor]):
        """Return the expectation over words that are data: their chances have no gradient."""
        pairs = zip(self.chances(conversation), self.words.scores, strict=True)
        return sum(chance * value(word) for chance, word in pairs)

    def kl(self, reference: Policy, conversation: str) -> torch.Tensor:
        """Return KL(self || reference) of a word, differentiable in this policy."""

        def log_ratio(word):
            other = reference.token_log_probs(conversation, word).sum().detach()
            return self.token_log_probs(conversation, word).sum() - other

        return self.mean(conversation, log_ratio)

    def gradient(self, of: torch.Tensor) -> dict[tuple[str, str], torch.Tensor]:
        """Return the derivative by every parameter that matters to ``of``."""
        leaves = list(self.parameters.values())
        found = torch.autograd.grad(of, leaves, allow_unused=True, retain_graph=True)
        return {
            name: each
            for name, each in zip(self.parameters, found, strict=True)
            if each is not None and each.abs().max() > 0
        }

    def moved(self, by: dict[tuple[str, str], torch.Tensor], rate: float) -> Policy:
        """Return the policy one step along a gradient."""
        other = Policy(self.words, self.seed)
        for name, value in self.parameters.items():
            new = value.detach() + rate * by.get(name, torch.zeros_like(value))
            other.parameters[name] = new.requires_grad_()
        return other

    def _tokens(self, beginning: str) -> list[str]:
        """Return what may follow the beginning of a word."""
        longer = (word for word in self.words.scores if word.startswith(beginning))
        return sorted({word[len(beginning)] for word in longer if len(word) > len(beginning)})

    def _logits(self, conversation: str, beginning: str) -> torch.Tensor:
        name = (conversation, beginning)
        if name not in self.parameters:
            key = f"{self.seed}/{conversation}/{beginning}".encode()
            seed = int.from_bytes(hashlib.sha256(key).digest()[:4], "big")
            drawn = torch.Generator().manual_seed(seed)
            logits = torch.randn(len(self._tokens(beginning)), generator=drawn, dtype=torch.float64)
            self.parameters[name] = logits.requires_grad_()
        return self.parameters[name]


class Draws:
    """One way that things can go: the first draws as prescribed, every later one the first choice.

    ``taken`` are (choice, number of choices), in order; ``probability`` is that of all of them.
    """

    def __init__(self, prescribed: tuple[int, ...]) -> None:
        self.prescribed = prescribed
        self.taken: list[tuple[int, int]] = []
        self.probability = 1.0

    def choose(self, probabilities: list[float]) -> int:
        place = len(self.taken)
        choice = self.prescribed[place] if place < len(self.prescribed) else 0
        self.taken.append((choice, len(probabilities)))
        self.probability *= probabilities[choice]
        return choice

    def next(self) -> tuple[int, ...] | None:
        """Return the prescription of the way after this one; ``None`` after the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] == taken[-1][1] - 1:
            taken.pop()
        if not taken:
            return None
        return (*(choice for choice, _ in taken[:-1]), taken[-1][0] + 1)


class EnumeratingEngine(OneByOne):
    """The engine of one way; a row of a seed is one response however often it is asked for."""

    def __init__(
        self, policy: Policy, group_size: int, draws: Draws, ladders=(), longest: int = 10**6
    ) -> None:
        self.policy = policy
        self.group_size = group_size
        self.draws = draws
        self.ladders = ladders  # (text, probability) of what the hint writer says
        self.longest = longest  # prompt that fits, in tokens
        self._drawn: dict[tuple[str, int], str] = {}

    def render(self, messages, **_):
        return [ord(char) for each in messages for char in f"[{each['role']}]{each['content']}"]

    def fits(self, prompt_ids):
        return len(prompt_ids) <= self.longest

    async def sample(self, prompt_ids, seed, rows, sampling):
        conversation = "".join(map(chr, prompt_ids))
        words = [self._word(conversation, seed + row) for row in rows]
        return [
            Response([*map(ord, word)], [0.0] * len(word), self.policy.words.text(word), False)
            for word in words
        ]

    def _word(self, conversation, seed):
        if (conversation, seed) not in self._drawn:
            words = self.policy.words_after(conversation)
            choice = self.draws.choose(self.policy.chances(conversation))
            self._drawn[conversation, seed] = words[choice]
        return self._drawn[conversation, seed]

    def given_response(self, text):
        return Response([*map(ord, text)], [], text, False, is_given=True)

    async def write(self, messages, seed):
        choice = self.draws.choose([probability for _, probability in self.ladders])
        return WrittenText(self.ladders[choice][0], 1)

    async def grade(self, problem, responses_G):
        known = self.policy.words.scores
        words = ["".join(map(chr, each.token_ids_T)) for each in responses_G]
        scores = [
            known.get(each.text, known.get(word, 0.0))
            for each, word in zip(responses_G, words, strict=True)
        ]
        return [Verdict(score, "correct" if score > 0 else "wrong") for score in scores]


@dataclass(frozen=True)
class Way:
    """One way that a prompt rollout can go."""

    probability: float
    outcome: Outcome


def every_outcome(
    method: Method,
    policy: Policy,
    *,
    group_size: int = 2,
    state: ProblemState | None = None,
    source: HintSource | None = None,
    item: Problem = PROBLEM,
    ladders=(),
    longest: int = 10**6,
    **settings,
) -> list[Way]:
    """Play a method through every way that it can go; their probabilities sum to 1."""
    source = source or (Numbered(method.max_level) if method.uses_hints else None)
    parts = RolloutParts(method, source, None, HintSettings(**settings), Texts())
    state = state or ProblemState(step=LATE)

    async def play() -> list[Way]:
        ways = []
        prescribed: tuple[int, ...] | None = ()
        while prescribed is not None:
            draws = Draws(prescribed)
            engine = EnumeratingEngine(policy, group_size, draws, ladders, longest)
            rollout = PromptRollout(item, state, replace(parts, engine=engine))
            outcome = await rollout.run(f"uid{len(ways)}", state.step)
            ways.append(Way(draws.probability, outcome))
            prescribed = draws.next()
        return ways

    ways = asyncio.run(play())
    assert abs(sum(way.probability for way in ways) - 1) < 1e-12
    return ways


def bare() -> str:
    """Return the conversation without a hint."""
    return _text(PROBLEM.messages)


def hinted(hint: str) -> str:
    """Return the conversation with a hint."""
    return _text(with_hint(PROBLEM.messages, hint, Texts()))


def revised(said: str) -> str:
    """Return the conversation after a first response and the instruction to revise it."""
    return f"{bare()}[assistant]{said}[user]{Texts().revise}"


def begun(beginning: str) -> str:
    """Return the conversation with the beginning of a response."""
    return _text(with_hint(PROBLEM.messages, beginning, Texts(), "prefill"))


def _begun(conversation: str) -> tuple[str, str]:
    """Return a conversation without the beginning of a response, and that beginning."""
    before, mark, said = conversation.rpartition("[assistant]")
    return (before, said) if mark and "[user]" not in said else (conversation, "")


def _text(messages) -> str:
    return "".join(f"[{each['role']}]{each['content']}" for each in messages)


def asked_of_guide(said: str) -> str:
    """Return the guide's conversation about a response."""
    texts = Texts()
    asked = fill(texts.guide_user, problem=PROBLEM.text, attempt=said)
    return f"[system]{texts.guide_system}[user]{asked}"


def refined(said: str, feedback: str) -> str:
    """Return the conversation after a first response and feedback on it."""
    return f"{bare()}[assistant]{said}[user]{fill(Texts().refine, feedback=feedback)}"
