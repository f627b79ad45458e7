"""verl's agent-loop worker, with one prompt rollout in place of a session per response."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig
from ray.exceptions import GetTimeoutError, RayActorError
from verl.experimental.agent_loop import AgentLoopWorker
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import store
from recipe.hint.adapter.engine import EngineBuilder, problems_in_flight
from recipe.hint.adapter.hint_sources import parts_of_training, parts_of_validation
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
_PROMPTS_PER_CALL = 64  # of the manager to a worker


class HintWorker(_WorkerTQ):
    """One coroutine per prompt: sample, decide, publish once."""

    _solution_key = ""  # data.solution_key

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Not super().__init__(): Ray ships this class by value, and the parent's own
        # zero-argument super() fails then. These are the parent's three lines.
        AgentLoopWorker.__init__(self, *args, **kwargs)
        tq.init()
        self.background_tasks = set()

        config = self.config
        self._publisher = store.Publisher()
        self._settings = settings = settings_of(config)
        self._solution_key = config.data.get("solution_key") or ""
        self._slots = asyncio.Semaphore(settings.max_in_flight)
        self._validation_slots = asyncio.Semaphore(validation_slots(config))
        engines, rollout = EngineBuilder(self, settings), config.actor_rollout_ref.rollout
        engine = engines.build(rollout, settings)
        self._training = parts_of_training(config, settings, engine, grader=engines.grader)
        engine = engines.build(rollout.val_kwargs)
        self._validation = parts_of_validation(config, settings, engine)
        gc.freeze()  # as in the trainer's process

    async def ping(self) -> None:
        """Answer at once."""

    async def generate_sequences(self, batch: Any) -> None:
        """Start the prompts as verl does, after marking all of them as running in one call."""
        # Once: every access to `batch["uid"]` builds the whole column.
        uids: Any = [tu.unwrap_non_tensor_data(uid) for uid in batch["uid"]]
        is_validation: Any = "validate" in batch and tu.unwrap_non_tensor_data(batch["validate"])
        await store.mark(uids, "val" if is_validation else "train", "running")
        await _WorkerTQ.generate_sequences(self, batch)

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
            tags = {"error": message, "is_fatal": _is_fatal(error)}
            await store.mark([prompt["uid"]], partition, "failure", **tags)

    async def roll_out(
        self, parts: RolloutParts, problem: Problem, prompt: dict, step: int
    ) -> Outcome:
        """Run one prompt rollout to its end, once one of the slots is free.

        verl submits a whole validation set at once. A prompt that waits here has no request in
        vLLM's own queue, where the limit ``rollout_s`` would already be running.
        """
        state = ProblemState.from_queue(prompt.get(store.STATE_FIELD, {}), step)
        rollout = PromptRollout(problem, state, parts)
        async with self._validation_slots if parts is self._validation else self._slots:
            return await rollout.run(prompt["uid"], step)


def validation_slots(config: DictConfig) -> int:
    """Return how many validation prompts a worker has in flight, at most ``hint.max_in_flight``."""
    shared = problems_in_flight(config) // config.actor_rollout_ref.rollout.agent.num_workers
    return min(config.hint.max_in_flight, max(1, shared))


class HintManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`HintWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # After super().__init__(), which sets verl's own class.
        self.agent_loop_workers_class = ray.remote(HintWorker)
        self._num_calls = 0

    def generate_sequences(self, prompts: Any) -> None:
        """Send the prompts to the workers, as verl does, but in several calls each.

        One call with 1,024 prompts would block a worker's event loop for 0.2 to 0.5 s.

        Raises:
            StallError: If a worker cannot mark its prompts as running, which it does first.
        """
        workers = self.agent_loop_workers
        num_rounds = math.ceil(len(prompts) / (_PROMPTS_PER_CALL * len(workers)))
        # Not `split`: what a resumed run reads back from the queue has nested columns.
        chunks = prompts.chunk(num_rounds * len(workers))
        # Where the last call ended: prompts that are refilled come one at a time.
        first, self._num_calls = self._num_calls, self._num_calls + len(chunks)
        calls = [
            workers[number % len(workers)].generate_sequences.remote(chunk)
            for number, chunk in enumerate(chunks, first)
        ]
        limit_s = self.config.hint.watchdog.answer_s
        try:
            ray.get(calls, timeout=limit_s)
        except GetTimeoutError as error:
            raise StallError(
                f"the agent-loop workers did not take {len(prompts)} prompts within "
                f"hint.watchdog.answer_s={limit_s:g} s; they, or TransferQueue, do not answer"
            ) from error


def _is_fatal(error: BaseException) -> bool:
    names = {type(error).__name__, type(getattr(error, "cause", None)).__name__}
    return isinstance(error, _FATAL) or bool(names & _FATAL_NAMES)
