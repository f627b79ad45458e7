"""Check what a method needs: verl's settings, phases, rows of the data, and room for its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.data import Model
from recipe.hint.adapter.preflight.settings import (
    ACTOR,
    GROUP,
    PROMPT_LENGTH,
    REF,
    ROLLOUT,
    Sizes,
    setting,
    text_of,
)
from recipe.hint.engine import Engine
from recipe.hint.hints.base import TeacherSampling, WrittenText
from recipe.hint.methods import Method
from recipe.hint.prompt import Message, Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import HintStatus, ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.hint.turns import RoleSampling
from recipe.problems.columns import ProblemFile
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, DataError
from recipe.run.paths import TRAIN
from recipe.verify.schema import Verdict

_ESTIMATOR, _FILTER = "algorithm.adv_estimator", "algorithm.filter_groups.enable"
_WARMUP = "trainer.critic_warmup"
# verl's estimators that compare a response with nothing of its group, and those that give a group
# of equal rewards advantages: they whiten over the batch.
_WITHOUT_GROUP = ("gae", "reinforce_plus_plus")
AGAINST_ALL = (*_WITHOUT_GROUP, "reinforce_plus_plus_baseline")
_KL = "it has KL coefficients of its own, or none"
_ROWS = "a prompt has several rows, and not always as many"
# The values of verl's settings that a method with its own credit needs, and why.
_NEEDS: dict[str, tuple[Any, str]] = {
    "algorithm.use_kl_in_reward": (False, _KL),
    f"{ACTOR}.use_kl_loss": (False, _KL),
    f"{ACTOR}.use_dynamic_bsz": (True, _ROWS),
    _FILTER: (False, "verl would take all rows of a prompt for one group"),
}
# Of ArCHer's critic: verl's schedule counts updates, of which a step has several.
_SCHEDULE = {
    "critic.optim.lr_scheduler_type": ("constant",),
    "critic.optim.lr_warmup_steps_ratio": (0.0,),
    "critic.optim.lr_warmup_steps": (-1, 0, None),
}
_MARK = "\x01{}\x02"  # no template strips it


def check_method(config: DictConfig, method: Method, sizes: Sizes) -> None:
    """Refuse values of verl's settings that do not give the loss that the method is defined by.

    Raises:
        ConfigError: Naming the setting.
    """
    who = f"trainer.method={config.trainer.method}"
    if method.credit is not None:
        _check_own_credit(config, method, who)
    estimator = setting(config, _ESTIMATOR)
    is_verls = method.credit is None
    if is_verls and method.needs.dropped_groups and estimator in AGAINST_ALL:
        raise ConfigError(
            f"{_ESTIMATOR}={estimator} does not work with {who}: a group that is dropped has equal "
            f"rewards, and this estimator compares them with more than the group"
        )
    if setting(config, "trainer.val_only"):
        return
    if sizes.group == 1:
        _check_single(config, method, who)
    method.check_run(
        group_size=sizes.group,
        use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward"),
        num_updates=sizes.num_updates,
    )


def _check_own_credit(config: DictConfig, method: Method, who: str) -> None:
    needs = dict(_NEEDS)
    if method.needs.reference:
        needs[f"{REF}.log_prob_use_dynamic_bsz"] = (True, _ROWS)
    if method.needs.log_probs:
        why = "it reads the trainer's own log-probabilities, which are not computed then"
        needs["algorithm.rollout_correction.bypass_mode"] = (False, why)
    if method.credit and method.credit.weighs_tokens:
        why = "it weighs each token, and other losses take one advantage a response"
        needs[f"{ACTOR}.policy_loss.loss_mode"] = ("vanilla", why)
    if method.needs.critic_rows:
        why = "the role that does not train would train, whose rows go along for the critic"
        needs[f"{ACTOR}.entropy_coeff"] = (0, why)
    for name, (needed, why) in needs.items():
        value = setting(config, name)
        if value is not None and value != needed:
            raise ConfigError(
                f"{name}={text_of(value)} does not work with {who}: {why}; give "
                f"{name}={text_of(needed)}"
            )
    for name, allowed in _SCHEDULE.items() if method.needs.utterance_critic else ():
        if (value := setting(config, name)) not in allowed:
            raise ConfigError(
                f"{name}={value} does not work with {who}: verl's schedule moves at each of "
                f"{method.settings_node}.updates; give {name}={allowed[0]}"
            )


def _check_single(config: DictConfig, method: Method, who: str) -> None:
    """Refuse a single response where an advantage compares those of one group."""
    from verl.trainer.ppo.core_algos import AdvantageEstimator

    estimator = setting(config, _ESTIMATOR)
    # One that a library of the user's registers may do without.
    grouping = {each.value for each in AdvantageEstimator}.difference(_WITHOUT_GROUP)
    compares = estimator in grouping
    if method.credit is not None:
        compares = method.needs.group
    if compares or setting(config, _FILTER):
        raise ConfigError(
            f"{GROUP}=1 must be at least 2: {who} with {_ESTIMATOR}={estimator} compares the "
            f"responses of one group; give 2 or more"
        )


def check_phases(
    config: DictConfig, method: Method, sizes: Sizes, num_steps: int, *, has_critic: bool
) -> None:
    """Refuse phases that do not fit the run's steps, or that its mode would mix.

    In asynchronous modes a prompt is sent ``num_warmup_batches`` steps before it trains, and keeps
    the phase of the step that sent it. The policy changes from step ``critic_warmup`` on.

    Raises:
        ConfigError: Naming the setting.
    """
    method.check_steps(num_steps)
    node, (name, first) = method.settings_node, method.first_phase
    low = method.role_steps[0]
    if sizes.mode != "sync":
        ahead = f"trainer.v1.{sizes.mode}.num_warmup_batches"
        lag = int(setting(config, ahead) or 0)  # of a fraction, the last step has its own prompts
        if low:
            raise ConfigError(
                f"{node}.t_low={low} needs trainer.v1.trainer_mode=sync: in {sizes.mode} a step "
                f"trains on prompts of several earlier ones, so that phases mix"
            )
        if first and num_steps - lag <= first < num_steps:
            raise ConfigError(
                f"{node}.{name}={first} leaves no step of {num_steps} to what follows: in "
                f"{sizes.mode} a step trains on prompts of {ahead}={lag} steps before; give at "
                f"most {max(num_steps - lag - 1, 0)}"
            )
    warmup = setting(config, _WARMUP) or 0
    if warmup > 1 and not has_critic:
        raise ConfigError(
            f"{_WARMUP}={warmup} keeps the policy as it is for {warmup - 1} steps, and no critic "
            f"would learn meanwhile; drop it"
        )
    for limit, steps in {"the run": num_steps, f"{node}.{name}": first, "t_low": low}.items():
        if 0 < steps < warmup:
            raise ConfigError(
                f"{_WARMUP}={warmup} is above the {steps} steps of {limit}, in which the policy "
                f"would not change once; give at most {steps}"
            )


def check_rows(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Check what the method trains on or continues: solutions, first attempts, thoughts.

    Raises:
        DataError: Naming the first row that lacks it, or where it is longer than a response.
        ConfigError: If the template opens the thoughts that the text must open.
    """
    limit, who = setting(config, "data.max_response_length"), config.trainer.method
    count = method.needs.first_attempts
    opens = bool(files) and _opens_thoughts(model, files[0].problems[0])
    if opens and (method.needs.solution or method.needs.closed_prompt):
        raise ConfigError(
            f"trainer.method={who} needs a chat template that does not end the prompt with "
            f"<think>, for the response or the solution opens it; set "
            f"actor_rollout_ref.model.custom_chat_template"
            f"{'' if method.needs.solution else f', or {method.settings_node}.format_weight=0'}"
        )
    for file in files:
        for row, problem in enumerate(file.problems):
            needed = {"solution": [problem.solution]} if method.needs.solution else {}
            if count:
                needed["first_attempts"] = [*problem.first_attempts[:count], *[""] * count][:count]
            for column, texts in needed.items():
                fault = _fault_of(model, texts, limit)
                if fault:
                    raise DataError(
                        f"{file.path}: the column `{column}` of row {row} of {TRAIN} {fault}, and "
                        f"trainer.method={who} needs {len(texts)} there as a response; drop the "
                        f"row, or raise data.max_response_length"
                    )


def _opens_thoughts(model: Model, problem: Problem) -> bool:
    return model.renderer.text(problem.messages).rstrip().endswith("<think>")


def _fault_of(model: Model, texts: Sequence[str], limit: int) -> str:
    for text in texts:
        if not text.strip():
            return "is missing or blank"
        if (length := len(model.renderer.response(text))) > limit:
            return f"has {length} tokens, above data.max_response_length={limit}"
    return ""


def check_conversations(
    config: DictConfig, method: Method, model: Model, texts: Texts, files: Sequence[ProblemFile]
) -> None:
    """Check that the longest conversation fits a prompt, and that the template takes its turns.

    Raises:
        ConfigError: If a later prompt could be above ``rollout.prompt_length``.
    """
    if not method.is_multi_turn:
        return
    problems = [problem for file in files for problem in file.problems]
    limit = setting(config, PROMPT_LENGTH)
    listener = _Listener(setting(config, f"{ROLLOUT}.response_length"))
    counts = model.count_tokens([problem.messages for problem in problems])
    if setting(config, "data.filter_overlong_prompts"):  # those above it are dropped
        most = setting(config, "data.max_prompt_length")
        counts = [count if count <= most else 0 for count in counts]
    # Instructions are the same for all problems: the longest question makes the longest prompt.
    longest = problems[max(range(len(problems)), key=counts.__getitem__)]
    settings = HintSettings(samples=NO_SAMPLES)
    parts = RolloutParts(method.validation(), None, listener, settings, texts, listener)
    asyncio.run(PromptRollout(longest, ProblemState(), parts).run("preflight", 0))
    for messages in listener.heard:
        model.check_template(listener.unmarked(messages, "x"))
    plain = model.count_tokens([listener.unmarked(messages, "") for messages in listener.heard])
    rooms = [listener.room(messages) for messages in listener.heard]
    total, room = max((a + b, b) for a, b in zip(plain, rooms, strict=True))
    if total > limit:
        raise ConfigError(
            f"{PROMPT_LENGTH}={limit} does not hold every turn of trainer.method="
            f"{config.trainer.method}: a later prompt may have {total - room} tokens and {room} of "
            f"earlier responses (data.max_response_length); give {PROMPT_LENGTH}={total} or more"
        )


class _Listener(Engine):
    """An engine that generates marks, and keeps the conversations that it is asked to render."""

    group_size = 1

    def __init__(self, response_length: int) -> None:
        self.sampling = TeacherSampling(max_tokens=response_length)
        self._response_length = response_length
        self._lengths: list[int] = []
        self.heard: list[Sequence[Message]] = []

    def room(self, messages: Sequence[Message]) -> int:
        """Return the tokens that the responses in a conversation may have."""
        text = "".join(turn["content"] for turn in messages)
        return sum(
            length * text.count(_MARK.format(number)) for number, length in enumerate(self._lengths)
        )

    def unmarked(self, messages: Sequence[Message], text: str) -> list[Message]:
        """Return a conversation with ``text`` for each of its responses."""
        result = [dict(turn) for turn in messages]
        for turn in result:
            for number in range(len(self._lengths)):
                turn["content"] = turn["content"].replace(_MARK.format(number), text)
        return result

    def render(self, messages: Sequence[Message], **_: object) -> list[int]:
        self.heard.append(messages)
        return []

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        marks = [self._mark(sampling) for _ in prompts]
        return [[Response([0], [0.0], mark, is_truncated=False)] for mark in marks]

    def _mark(self, sampling: RoleSampling | None) -> str:
        own = sampling.overrides(self._response_length) if sampling else {}
        self._lengths.append(int(own.get("max_tokens", self._response_length)))
        return _MARK.format(len(self._lengths) - 1)

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        return WrittenText(self._mark(RoleSampling(max_tokens=sampling.max_tokens)), 0)

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        return [Verdict(0.0, "wrong")] * len(responses_G)
