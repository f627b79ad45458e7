"""verl's agent-loop worker, with one prompt rollout in place of a session per response."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import ray
from ray.exceptions import RayActorError
from verl.experimental.agent_loop import AgentLoopWorker
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ

from recipe.hint.adapter import store
from recipe.hint.adapter.engine import EngineBuilder
from recipe.hint.adapter.hint_sources import build_parts
from recipe.hint.record import Outcome
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import settings_of
from recipe.problems.schema import Problem, problem_from_row
from recipe.run.errors import StallError

logger = logging.getLogger(__name__)
# The plain class behind verl's Ray actor class.
_WorkerTQ: Any = getattr(AgentLoopWorkerTQ, "__ray_actor_class__")  # noqa: B009 - Ray sets it
# After one of these errors nothing more can be generated.
_FATAL = (StallError, RayActorError)
_FATAL_NAMES = {"EngineDeadError", "EngineGenerateError", "ActorDiedError"}


class HintWorker(_WorkerTQ):
    """One coroutine per prompt: sample, decide, publish once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Not super().__init__(): Ray ships this class by value, and the parent's own
        # zero-argument super() fails then. These are the parent's three lines.
        AgentLoopWorker.__init__(self, *args, **kwargs)
        store.open_queue()
        self.background_tasks = set()

        config = self.config
        self._publisher = store.Publisher()
        self._settings = settings = settings_of(config)
        self._solution_key = config.data.get("solution_key") or ""
        self._slots = asyncio.Semaphore(settings.max_in_flight)
        engines, rollout = EngineBuilder(self, settings), config.actor_rollout_ref.rollout
        self._training = build_parts(config, settings, engines.build(rollout, settings))
        engine = engines.build(rollout.val_kwargs)
        self._validation = build_parts(config, settings, engine, validates=True)

    async def ping(self) -> None:
        """Answer at once."""

    async def _run_prompt(
        self, prompt: dict, sampling_params: dict, trajectory: dict, trace: bool = False
    ) -> None:
        """Roll out and publish one prompt; whatever fails becomes its status in the queue."""
        parts, partition = self._training, "train"
        if trajectory["validate"]:
            parts, partition = self._validation, "val"
        name = prompt["uid"]
        try:
            problem = problem_from_row(prompt, self._solution_key)
            name = problem.id
            outcome = await self.roll_out(parts, problem, prompt, int(trajectory["step"]))
            await self._publisher.publish(outcome, prompt, partition)
        # Any failure must reach the queue as a status, what was cancelled beneath it too.
        except (Exception, asyncio.CancelledError) as error:
            logger.exception("problem %s failed", name)
            message = f"problem {name}: {type(error).__name__}: {error}"[:2000]
            names = {type(error).__name__, type(getattr(error, "cause", None)).__name__}
            is_fatal = isinstance(error, _FATAL) or bool(names & _FATAL_NAMES)
            tags = {"error": message, "is_fatal": is_fatal}
            await store.mark([prompt["uid"]], partition, "failure", **tags)

    async def roll_out(
        self, parts: RolloutParts, problem: Problem, prompt: dict, step: int
    ) -> Outcome:
        """Run one prompt rollout to its end, once one of the slots is free.

        verl submits a whole validation set at once. A prompt that waits here has no request in
        vLLM's own queue, where the limit ``rollout_s`` would already be running.
        """
        state = ProblemState(**{**prompt.get(store.STATE_FIELD, {}), "step": step})
        rollout = PromptRollout(problem, state, parts)
        async with self._slots:
            return await rollout.run(prompt["uid"], step)


class HintManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`HintWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # After super().__init__(), which sets verl's own class.
        self.agent_loop_workers_class = ray.remote(HintWorker)

    def generate_sequences(self, prompts: Any) -> None:
        """Send the prompts to the workers as verl does, each time beginning with another of them.

        Refilled prompts come one at a time, and verl would give all of them to the first.
        """
        super().generate_sequences(prompts)
        self.agent_loop_workers.append(self.agent_loop_workers.pop(0))
