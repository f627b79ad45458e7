"""verl's agent-loop worker with the project's visit in place of one session per rollout."""

from __future__ import annotations

import gc
import logging
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import OmegaConf
from verl.experimental.agent_loop import AgentLoopWorker
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils import tensordict_utils as tu

from recipe.hint.errors import StallError
from recipe.hint.hints.base import HintSource
from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.hint.hints.guarded import GuardedSource
from recipe.hint.hints.leak import LeakGuard, judged_equal
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.hints.solution_prefix import SolutionPrefix, unit_ends
from recipe.hint.methods import Method
from recipe.hint.methods.grpo import Grpo
from recipe.hint.problems.rows import problem_from_row
from recipe.hint.prompt import Texts
from recipe.hint.runtime import store
from recipe.hint.runtime.engine import token_ends
from recipe.hint.runtime.engine_builder import EngineBuilder
from recipe.hint.schema import History
from recipe.hint.settings import (
    HintSettings,
    build_method,
    num_levels,
    read_settings,
    read_texts,
    source_of,
)
from recipe.hint.visit import Visit, VisitSettings

logger = logging.getLogger(__name__)
# The plain class behind verl's Ray actor class.
_WorkerTQ = AgentLoopWorkerTQ.__ray_actor_class__
# Nothing can be generated any more after one of these.
_FATAL = (StallError, ray.exceptions.RayActorError)
_FATAL_NAMES = ("EngineDeadError", "EngineGenerateError", "ActorDiedError")


class HintWorker(_WorkerTQ):
    """One coroutine per prompt: sample, decide, publish once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Not super().__init__(): Ray ships this class by value, and the parent's own
        # zero-argument super() fails then. These are the parent's three lines.
        AgentLoopWorker.__init__(self, *args, **kwargs)
        tq.init()
        self.background_tasks = set()

        self._publisher = store.Publisher()
        config = self.config
        node = OmegaConf.to_container(config.hint, resolve=True)
        settings = read_settings(node)
        texts = read_texts(settings)
        self._method = build_method(config.trainer, settings)
        self._visit_settings = VisitSettings(
            texts=texts,
            style=settings.style,
            too_long=settings.too_long,
            seed=settings.seed,
            conditioning=settings.conditioning,
            reliance_every=settings.reliance_every,
        )
        engines = EngineBuilder(self, settings)
        source = build_source(settings, texts, self._method, tokenizer=self.tokenizer)
        guard = LeakGuard(settings.leak_policy, judged_equal(engines.judge.judge_many))
        self._source = source and GuardedSource(source, guard)
        self._train_engine = engines.build(config.actor_rollout_ref.rollout, settings)
        self._val_engine = engines.build(config.actor_rollout_ref.rollout.val_kwargs)
        gc.freeze()  # as in the trainer's process

    async def ping(self) -> None:
        """Answer at once; a dead worker cannot."""

    async def generate_sequences(self, batch: Any) -> None:
        """As verl's; all prompts are marked in one call before the first of them starts."""
        rows = range(len(batch))
        uids = [tu.unwrap_non_tensor_data(batch["uid"][row]) for row in rows]
        is_validation = "validate" in batch and tu.unwrap_non_tensor_data(batch["validate"])
        await store.mark(uids, _partition(is_validation), "running")
        await _WorkerTQ.generate_sequences(self, batch)

    async def _run_prompt(
        self, prompt: dict, sampling_params: dict, trajectory: dict, trace: bool = False
    ) -> None:
        is_validation = bool(trajectory["validate"])
        uid, partition = prompt["uid"], _partition(is_validation)
        try:
            step = int(trajectory["step"])
            outcome = await self._visit(prompt, step, is_validation).run(uid, step)
            await self._publisher.publish(outcome, prompt, partition)
        except Exception as error:  # noqa: BLE001 - any failure must reach the queue as a status
            name = (prompt.get("extra_info") or {}).get("index", uid)
            logger.exception("problem %s failed", name)
            message = f"problem {name}: {type(error).__name__}: {error}"
            await store.mark(
                [uid], partition, "failure", error=message[:2000], is_fatal=_is_fatal(error)
            )

    def _visit(self, prompt: dict, step: int, is_validation: bool) -> Visit:
        history = History(**{**prompt.get("hint_history", {}), "step": step})
        # Validation has no method to ask and no source of hints: level 0 by construction.
        return Visit(
            problem_from_row(prompt),
            history,
            method=Grpo() if is_validation else self._method,
            source=None if is_validation else self._source,
            engine=self._val_engine if is_validation else self._train_engine,
            settings=self._visit_settings,
        )


class HintManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`HintWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # After super().__init__(), which sets verl's own class.
        self.agent_loop_workers_class = ray.remote(HintWorker)


def build_source(
    settings: HintSettings, texts: Texts, method: Method, *, tokenizer: Any
) -> HintSource | None:
    """The source of the method's hints; ``None`` when it uses none.

    Raises:
        ConfigError: If the tokenizer cannot count what the source counts.
    """
    if not method.uses_hints:
        return None
    name = source_of(settings, method)
    levels = num_levels(settings, name)
    source: HintSource
    if name == "solution_prefix":
        unit = settings.prefix.unit
        ends = unit_ends(unit, token_ends(tokenizer) if unit == "token" else None)
        source = SolutionPrefix(ratios=settings.prefix.ratios, ends=ends)
    elif name == "dataset":
        source = DatasetHints(max_level=levels, seed=settings.seed)
    elif name == "teacher":
        source = _build_teacher(settings, texts, levels)
    else:
        source = SelfGenerated(texts=texts, attempts=settings.attempts, max_level=levels)
    return Increments(source, method.increments) if method.increments > 1 else source


def _build_teacher(settings: HintSettings, texts: Texts, levels: int) -> HintSource:
    from recipe.hint.hints.teacher import Teacher
    from recipe.hint.hints.teacher_settings import Sampling as TeacherSampling

    sampling = TeacherSampling(
        settings.temperature, settings.top_p, settings.max_tokens, settings.seed
    )
    return Teacher(
        settings.teacher,
        texts=texts,
        sampling=sampling,
        attempts=settings.attempts,
        max_level=levels,
    )


def _partition(is_validation: bool) -> str:
    return "val" if is_validation else "train"


def _is_fatal(error: BaseException) -> bool:
    names = {type(error).__name__, type(getattr(error, "cause", None)).__name__}
    return isinstance(error, _FATAL) or bool(names & set(_FATAL_NAMES))
