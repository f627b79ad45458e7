"""Checks of methods with several turns: verl's settings that they take over, and lengths."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from omegaconf import DictConfig

from recipe.hint.engine import BareEngine
from recipe.hint.errors import ConfigError, DataError
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.teacher_settings import Sampling
from recipe.hint.methods import Method
from recipe.hint.prompt import Message, Texts
from recipe.hint.rollout import Parts, PromptRollout
from recipe.hint.runtime.chat_template import response_ids
from recipe.hint.runtime.preflight.data import TRAIN, DataFile, Model
from recipe.hint.runtime.preflight.settings import ACTOR, ROLLOUT, setting
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import HintStatus, Problem, ProblemState, Response, Verdict
from recipe.hint.settings import HintSettings
from recipe.hint.turns import RoleSampling

_PROMPT = f"{ROLLOUT}.prompt_length"
_OWN = "advantages are the method's own (docs/credit.md)"
# What such a method needs of verl's settings, and why nothing else would do.
_NEEDS = {
    "algorithm.use_kl_in_reward": (False, "each turn has a KL coefficient of its own"),
    "algorithm.norm_adv_by_std_in_grpo": (True, _OWN),
    "algorithm.gamma": (1.0, _OWN),
    "algorithm.lam": (1.0, _OWN),
    "algorithm.filter_groups.enable": (
        False,
        "verl's filter takes all rows of a prompt for one group, whatever the method compares",
    ),
    f"{ACTOR}.use_kl_loss": (False, "each turn has a KL coefficient of its own"),
    f"{ACTOR}.use_dynamic_bsz": (True, "a prompt has several rows, and not always as many"),
}
_LOSS = ("loss_agg_mode", "loss_scale_factor")
_MARK = "\x01{}\x02"  # no template strips it


def check_turns(config: DictConfig, method: Method) -> None:
    """Refuse values of verl's settings that a method with its own credit does not read.

    Raises:
        ConfigError: Naming the setting.
    """
    if not method.has_own_credit:
        return
    from verl.trainer.ppo.core_algos import AdvantageEstimator

    needs = {"algorithm.adv_estimator": (AdvantageEstimator.GRPO.value, _OWN), **_NEEDS}
    if method.needs_log_probs:
        why = "it reads the trainer's own log-probabilities, which are not computed then"
        needs["algorithm.rollout_correction.bypass_mode"] = (False, why)
    for name, (needed, why) in needs.items():
        value = setting(config, name)
        if value is not None and value != needed:
            raise ConfigError(
                f"{name}={_text(value)} does not work with "
                f"trainer.method={config.trainer.method}: {why}; give {name}={_text(needed)}"
            )
    mode, scale = (setting(config, f"{ACTOR}.{name}") for name in _LOSS)
    if mode == "seq-mean-token-sum-norm" and scale is None:
        raise ConfigError(
            f"{ACTOR}.loss_agg_mode={mode} divides each micro-batch by its own longest response, "
            f"which weighs turns by their neighbours; give {ACTOR}.loss_scale_factor="
            f"{setting(config, 'data.max_response_length')} (data.max_response_length)"
        )


def check_conversations(
    config: DictConfig, method: Method, model: Model, texts: Texts, files: Sequence[DataFile]
) -> None:
    """Check that the longest conversation has room in a prompt, and the template takes its turns.

    Raises:
        ConfigError: If a later prompt could be above ``rollout.prompt_length``.
    """
    if not method.has_turns:
        return
    problems = [problem for file in files for problem in file.problems]
    limit = setting(config, _PROMPT)
    asker = _Listener(setting(config, f"{ROLLOUT}.response_length"))
    counts = model.count_tokens([problem.messages for problem in problems])
    # Instructions are the same for all problems: the longest question makes the longest prompt.
    longest = problems[max(range(len(problems)), key=counts.__getitem__)]
    parts = Parts(method.validation(), None, asker, _SETTINGS, texts, asker)
    asyncio.run(PromptRollout(longest, ProblemState(), parts).run("preflight", 0))
    for messages in asker.heard:
        model.check_template(asker.unmarked(messages, "x"))
    texts_only = model.count_tokens([asker.unmarked(messages, "") for messages in asker.heard])
    rooms = [asker.room(messages) for messages in asker.heard]
    total, room = max((a + b, b) for a, b in zip(texts_only, rooms, strict=True))
    if total > limit:
        raise ConfigError(
            f"{_PROMPT}={limit} does not hold every turn of trainer.method="
            f"{config.trainer.method}: a later prompt may have {total - room} tokens and {room} of "
            f"earlier responses (data.max_response_length); give {_PROMPT}={total} or more"
        )


def check_solutions(
    config: DictConfig, method: Method, model: Model, files: Sequence[DataFile]
) -> None:
    """Check that every training row has a solution that fits a response, where those train.

    Raises:
        DataError: Naming the first row without one.
    """
    if not method.needs_solution:
        return
    limit = setting(config, "data.max_response_length")
    for file in files:
        for row, problem in enumerate(file.problems):
            ids = response_ids(model.tokenizer, model.template_options, problem.solution)
            if problem.solution.strip() and len(ids) <= limit:
                continue
            found = "is missing"
            if problem.solution.strip():
                found = f"has {len(ids)} tokens, above data.max_response_length={limit}"
            raise DataError(
                f"{file.path}: the column `solution` of row {row} of {TRAIN} {found}, and "
                f"trainer.method={config.trainer.method} trains on it as a response; drop the row"
                f"{'' if found == 'is missing' else ', or raise data.max_response_length'}"
            )


def check_attempts(files: Sequence[DataFile], count: int) -> None:
    """Check that the training files have first attempts where the method goes on from some.

    Raises:
        DataError: Naming the first row without one.
    """
    for file in files if count else ():
        for row, problem in enumerate(file.problems):
            if not problem.attempts:
                raise DataError(
                    f"{file.path}: row {row} of {TRAIN} has nothing in the column "
                    f"`first_attempts`, which offline_attempts={count} goes on from; add a list "
                    f"of responses to it, or set offline_attempts=0"
                )


class _Listener(BareEngine):
    """An engine that generates marks, and keeps the conversations that it is asked to render."""

    group_size = 1

    def __init__(self, response_length: int) -> None:
        self.sampling = Sampling(max_tokens=response_length)
        self._response_length = response_length
        self._lengths: list[int] = []
        self.heard: list[Sequence[Message]] = []

    def room(self, messages: Sequence[Message]) -> int:
        """Return the tokens that the responses in a conversation may have."""
        said = "".join(turn["content"] for turn in messages)
        return sum(
            length * said.count(_MARK.format(number)) for number, length in enumerate(self._lengths)
        )

    def unmarked(self, messages: Sequence[Message], text: str) -> list[Message]:
        """Return a conversation with ``text`` for each of its responses."""
        result = [dict(turn) for turn in messages]
        for turn in result:
            for number in range(len(self._lengths)):
                turn["content"] = turn["content"].replace(_MARK.format(number), text)
        return result

    def render(self, messages: Sequence[Message]) -> list[int]:
        self.heard.append(messages)
        return []

    async def sample(
        self,
        prompt_ids: list[int],
        seed: int,
        rows: range | None = None,
        sampling: RoleSampling | None = None,
    ) -> list[Response]:
        own = sampling.max_tokens if sampling else None
        if own and own > self._response_length:
            raise ConfigError(
                f"guide_max_tokens={own} is above data.max_response_length="
                f"{self._response_length}, the room of every response; lower it, or give null"
            )
        self._lengths.append(own or self._response_length)
        text = _MARK.format(len(self._lengths) - 1)
        return [Response([0], [0.0], text, is_truncated=False)]

    async def reply(
        self, messages: Sequence[Message], sampling: Sampling
    ) -> WrittenText | HintStatus:
        own = RoleSampling(max_tokens=sampling.max_tokens)
        [response] = await self.sample([], 0, sampling=own)
        return WrittenText(response.text, 0)

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        return [Verdict(0.0, "wrong")] * len(responses_G)


_SETTINGS = HintSettings(samples=NO_SAMPLES)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
