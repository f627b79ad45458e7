"""Check methods with several turns: the settings of verl that they replace, and lengths."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.data import Model, ProblemFile
from recipe.hint.adapter.preflight.settings import ACTOR, PROMPT_LENGTH, REF, ROLLOUT, setting
from recipe.hint.engine import Engine
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.teacher_settings import TeacherSampling
from recipe.hint.methods import Method, MultiTurn, OwnCredit
from recipe.hint.prompt import Message, Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import HintStatus, ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.hint.turns import RoleSampling
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, DataError
from recipe.run.paths import TRAIN
from recipe.verify.schema import Verdict

_OWN = "advantages are the method's own (docs/lab/credit.md)"
_KL = "a method of several turns has KL coefficients of its own, others have none"
_ROWS = "a prompt has several rows, and not always as many"
# The values of verl's settings that such a method needs, and why.
_NEEDS = {
    "algorithm.use_kl_in_reward": (False, _KL),
    "algorithm.norm_adv_by_std_in_grpo": (True, _OWN),
    "algorithm.gamma": (1.0, _OWN),
    "algorithm.lam": (1.0, _OWN),
    "algorithm.filter_groups.enable": (
        False,
        "verl's filter takes all rows of a prompt for one group, whatever the method compares",
    ),
    f"{ACTOR}.use_kl_loss": (False, _KL),
    f"{ACTOR}.use_dynamic_bsz": (True, _ROWS),
}
# Settings that the critic of such a method does not read, and their neutral value.
_OF_CRITIC = {
    "critic.ppo_mini_batch_size": f"{ACTOR}.ppo_mini_batch_size",
    "critic.loss_agg_mode": f"{ACTOR}.loss_agg_mode",
    "critic.loss_scale_factor": f"{ACTOR}.loss_scale_factor",
    "critic.cliprange_value": 0.5,
}
_OF_UTTERANCES = {
    "critic.ppo_epochs": f"{ACTOR}.ppo_epochs",
    "critic.shuffle": f"{ACTOR}.shuffle",
    "critic.data_loader_seed": 42,
}
# Of ArCHer's: verl's schedule counts updates, of which a step has several.
_SCHEDULE = {
    "critic.optim.lr_scheduler_type": ("constant",),
    "critic.optim.lr_warmup_steps_ratio": (0.0,),
    "critic.optim.lr_warmup_steps": (-1, 0, None),
}
# Estimators that give a group of equal rewards advantages: they whiten over the batch.
AGAINST_ALL = ("gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline")
_LOSS = ("loss_agg_mode", "loss_scale_factor")
_MARK = "\x01{}\x02"  # no template strips it


def check_turns(config: DictConfig, method: Method) -> None:
    """Refuse values of verl's settings that do not give the loss that the method is defined by.

    Raises:
        ConfigError: Naming the setting.
    """
    if isinstance(method, OwnCredit):
        _check_own_credit(config, method)
    else:
        _check_drops(config, method)
    _check_division(config, (ACTOR,) if method.has_own_credit else (ACTOR, "critic"))


def _check_own_credit(config: DictConfig, method: OwnCredit) -> None:
    """Refuse values that a method with its own credit does not read."""
    from verl.trainer.ppo.core_algos import AdvantageEstimator

    needs = {"algorithm.adv_estimator": (AdvantageEstimator.GRPO.value, _OWN), **_NEEDS}
    if method.needs_reference:
        needs[f"{REF}.log_prob_use_dynamic_bsz"] = (True, _ROWS)
    if method.needs_log_probs:
        why = "it reads the trainer's own log-probabilities, which are not computed then"
        needs["algorithm.rollout_correction.bypass_mode"] = (False, why)
    if type(method).token_weights is not OwnCredit.token_weights:
        why = "it weighs each token, and other losses take one advantage a response"
        needs[f"{ACTOR}.policy_loss.loss_mode"] = ("vanilla", why)
    for name, (needed, why) in needs.items():
        value = setting(config, name)
        if value is not None and value != needed:
            raise ConfigError(
                f"{name}={_text(value)} does not work with "
                f"trainer.method={config.trainer.method}: {why}; give {name}={_text(needed)}"
            )


def _check_division(config: DictConfig, engines: Sequence[str]) -> None:
    """Refuse losses that depend on how rows fall to ranks and micro-batches."""
    name = f"{ACTOR}.policy_loss.loss_mode"
    if (loss := setting(config, name)) == "geo_mean":
        raise ConfigError(
            f"{name}={loss} adds up the means of the micro-batches, whatever the size of each: "
            f"the update would depend on how rows fall to GPUs and micro-batches; give "
            f"{name}=vanilla, or another one"
        )
    for engine in engines:
        mode, scale = (setting(config, f"{engine}.{each}") for each in _LOSS)
        if mode == "seq-mean-token-sum-norm" and scale is None:
            raise ConfigError(
                f"{engine}.loss_agg_mode={mode} divides each micro-batch by its own longest "
                f"response: the update would depend on how rows fall to GPUs and micro-batches; "
                f"give {engine}.loss_scale_factor={setting(config, 'data.max_response_length')} "
                f"(data.max_response_length)"
            )


def _check_drops(config: DictConfig, method: Method) -> None:
    estimator = setting(config, "algorithm.adv_estimator")
    if method.drops_groups and estimator in AGAINST_ALL:
        raise ConfigError(
            f"algorithm.adv_estimator={estimator} does not work with trainer.method="
            f"{config.trainer.method}: a group that is dropped has equal rewards, and this "
            f"estimator compares them with more than the group; give one that does not"
        )


def check_critic(config: DictConfig, method: Method) -> None:
    """Refuse settings of the critic that do nothing, or something else, beside own credit.

    Raises:
        ConfigError: Naming the setting.
    """
    if not (isinstance(method, OwnCredit) and method.needs_critic):
        return
    name, of_utterances = config.trainer.method, method.utterance_critic is not None
    for key, same in (_OF_CRITIC | (_OF_UTTERANCES if of_utterances else {})).items():
        value = setting(config, key)
        if value != (setting(config, same) if isinstance(same, str) else same):
            raise ConfigError(
                f"{key}={_text(value)} would not be read by trainer.method={name}: its critic has "
                f"a loss and batches of its own (docs/lab/credit.md); drop the setting"
            )
    entropy = setting(config, f"{ACTOR}.entropy_coeff")
    if entropy and method.publishes_critic_rows:
        raise ConfigError(
            f"{ACTOR}.entropy_coeff={entropy} would train the role that does not train, whose rows "
            f"go along for the critic of trainer.method={name}; give {ACTOR}.entropy_coeff=0"
        )
    for key, allowed in _SCHEDULE.items() if of_utterances else ():
        if (value := setting(config, key)) not in allowed:
            raise ConfigError(
                f"{key}={value} does not work with trainer.method={name}: verl's schedule moves at "
                f"each of {method.settings_node}.updates, and ends with "
                f"trainer.total_training_steps of them; give {key}={allowed[0]}"
            )


def check_conversations(
    config: DictConfig, method: Method, model: Model, texts: Texts, files: Sequence[ProblemFile]
) -> None:
    """Check that the longest conversation fits a prompt, and that the template accepts its turns.

    Raises:
        ConfigError: If a later prompt could be above ``rollout.prompt_length``.
    """
    if not method.is_multi_turn:
        return
    problems = [problem for file in files for problem in file.problems]
    limit = setting(config, PROMPT_LENGTH)
    asker = _Listener(setting(config, f"{ROLLOUT}.response_length"))
    counts = model.count_tokens([problem.messages for problem in problems])
    if setting(config, "data.filter_overlong_prompts"):  # those above it are dropped
        most = setting(config, "data.max_prompt_length")
        counts = [count if count <= most else 0 for count in counts]
    # Instructions are the same for all problems: the longest question makes the longest prompt.
    longest = problems[max(range(len(problems)), key=counts.__getitem__)]
    parts = RolloutParts(method.validation(), None, asker, _SETTINGS, texts, asker)
    asyncio.run(PromptRollout(longest, ProblemState(), parts).run("preflight", 0))
    for messages in asker.heard:
        model.check_template(asker.unmarked(messages, "x"))
    texts_only = model.count_tokens([asker.unmarked(messages, "") for messages in asker.heard])
    rooms = [asker.room(messages) for messages in asker.heard]
    total, room = max((a + b, b) for a, b in zip(texts_only, rooms, strict=True))
    if total > limit:
        raise ConfigError(
            f"{PROMPT_LENGTH}={limit} does not hold every turn of trainer.method="
            f"{config.trainer.method}: a later prompt may have {total - room} tokens and {room} of "
            f"earlier responses (data.max_response_length); give {PROMPT_LENGTH}={total} or more"
        )


def check_thoughts(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Refuse a chat template that opens the thoughts of a response, where the text must do so.

    A solution after such a prompt would end the policy's turn inside its thoughts, and a form that
    asks for ``<think>`` would have it written twice.

    Raises:
        ConfigError: Naming the method, or its setting.
    """
    problems = [problem for file in files for problem in file.problems]
    if not (problems and (method.needs_solution or method.must_open_think)):
        return
    if not model.renderer.text(problems[0].messages).rstrip().endswith("<think>"):
        return
    if method.needs_solution:
        what = "trains on the column `solution`, which would end inside its thoughts; give"
    else:
        weight = f"{method.settings_node}.format_weight"
        what = f"rewards by {weight} a <think> that the response writes; give {weight}=0, or"
    raise ConfigError(
        f"trainer.method={config.trainer.method} {what} a chat template that does not end the "
        f"prompt with <think>, as this one does (actor_rollout_ref.model.custom_chat_template)"
    )


def check_solutions(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
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
            ids = model.renderer.response(problem.solution)
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


def check_attempts(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Check that every training row has enough first attempts, none of them cut or blank.

    Raises:
        DataError: Naming the first row without them.
    """
    count = method.num_first_attempts if isinstance(method, MultiTurn) else 0
    limit = setting(config, "data.max_response_length")
    for file in files if count else ():
        for row, problem in enumerate(file.problems):
            place = f"{file.path}: row {row} of {TRAIN}"
            if len(problem.first_attempts) < count:
                raise DataError(
                    f"{place} has {len(problem.first_attempts)} texts in the column "
                    f"`first_attempts`, and offline_attempts={count} continues as many; add "
                    f"responses to it, or set offline_attempts to the fewest that a row has"
                )
            for text in problem.first_attempts[:count]:
                if not text.strip():
                    raise DataError(
                        f"{place} has a blank text in the column `first_attempts`, which no "
                        f"response would revise; drop it"
                    )
                ids = model.renderer.response(text)
                if len(ids) > limit:
                    raise DataError(
                        f"{place} has a text of {len(ids)} tokens in the column `first_attempts`, "
                        f"above data.max_response_length={limit}: no response is that long; drop "
                        f"the text, or raise data.max_response_length"
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


_SETTINGS = HintSettings(samples=NO_SAMPLES)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
