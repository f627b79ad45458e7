"""What a step costs at scale: real methods and tracker, simulated replicas, a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recipe.hint.hints.base import HintResult
from recipe.hint.methods import BASELINE, METHODS
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Texts
from recipe.hint.record import PromptRecord
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import seed_at
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.study.bench.cases import Case, cases_of
from recipe.study.bench.clock import run_virtual
from recipe.study.bench.fleet import SPEEDS, Fleet
from recipe.study.bench.release import Batch, ReleaseRollout
from recipe.study.bench.settings import RELEASE, method_of
from recipe.study.bench.world import SimulatedEngine, SimulatedSource

_LEVELS = 3
_SETTINGS = HintSettings(samples=NO_SAMPLES)
_FIRST_STEP = 1000  # past every warm-up of a method


@dataclass(frozen=True, slots=True)
class _Done:
    record: PromptRecord
    submitted: int


class Simulation:
    """The steps of one case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        cls = METHODS[method_of(case.arm)]
        self._method = cls(max_level=_LEVELS if cls.uses_hints else 0)
        self._source = None
        if self._method.uses_hints:
            attempts = case.world.attempts if self._method.source == "self_generated" else 0
            repeats = case.arm == RELEASE
            self._source = SimulatedSource(attempts, self._method.max_level, repeats=repeats)
        num_rollout = case.replicas
        if case.mode == "separate_async":
            num_rollout -= case.train_replicas
        self._speed = SPEEDS[case.speed]
        self._fleet = Fleet(self._speed, num_rollout)
        self._tracker = RewardTracker()
        self._ready: list[_Done] = []
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 0
        self._evicted = 0

    async def run(self) -> dict[str, float]:
        """Make all steps; return means per step of those that count."""
        case, loop = self._case, asyncio.get_running_loop()
        if case.mode != "sync":
            self._submit(case.batch, 1)
        done: list[_Done] = []
        ages: list[int] = []
        wait_s = 0.0
        start = self._counts()
        for step in range(1, case.warmup + case.steps + 1):
            if step == case.warmup + 1:
                start, done, ages, wait_s = self._counts(), [], [], 0.0
            self._submit(case.batch, step)
            updates = case.updates if case.mode == "separate_async" else 1
            for _ in range(updates):
                began_s = loop.time()
                share = await self._collect(case.batch // updates, step)
                wait_s += loop.time() - began_s
                done += share
                ages += [step - each.submitted for each in share]
                if case.mode == "colocate_async":
                    self._fleet.stop()
                await asyncio.sleep(self._update_s([each.record for each in share]))
            self._fleet.stop()
            await asyncio.sleep(case.sync_s)
            self._fleet.resume()
        num_left = len(self._tasks) + len(self._ready)
        for task in self._tasks:
            task.cancel()
        spent = {name: value - start[name] for name, value in self._counts().items()}
        means = {name: value / case.steps for name, value in spent.items()}
        records = [each.record for each in done]
        return means | {
            "wait_s": wait_s / case.steps,
            "trained_tokens": sum(each.trained_tokens for each in records) / case.steps,
            "num_with_signal": sum(each.has_signal for each in records) / case.steps,
            "unresolved": _unresolved(records),
            "trained_groups": len(records) / case.steps,
            "left": num_left,
            "age": sum(ages) / len(ages),
        }

    def _counts(self) -> dict[str, float]:
        fleet = self._fleet
        return {
            "step_s": asyncio.get_running_loop().time(),
            "tokens": fleet.num_tokens,
            "evicted": self._evicted,
            "submitted": self._next,
        }

    # -- submit and collect, as verl's trainers and buffers do ----------------------------------

    def _submit(self, count: int, step: int) -> None:
        numbers = [(self._next + place) % (2 * self._case.batch) for place in range(count)]
        self._next += count
        if self._case.arm == RELEASE:
            self._start(self._released(numbers, step))
        else:
            for number in numbers:
                self._start(self._single(number, step))

    def _start(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            self._error = task.exception()
        self._changed.set()

    async def _single(self, number: int, step: int) -> None:
        outcome = await self._rollout(number, step)
        self._ready.append(_Done(outcome, step))

    async def _collect(self, count: int, step: int) -> list[_Done]:
        """Return the oldest finished groups when there are enough, and learn from them."""
        while True:
            if self._error:
                raise self._error
            fresh = [e for e in self._ready if step - e.submitted + 1 <= self._case.max_staleness]
            if num_stale := len(self._ready) - len(fresh):
                self._tracker.update(each.record for each in self._ready if each not in fresh)
                self._evicted += num_stale
                self._ready = fresh
                self._submit(num_stale, step)
            if len(self._ready) >= count:
                break
            self._changed.clear()
            await self._changed.wait()
        self._ready.sort(key=lambda each: each.submitted)
        taken, self._ready = self._ready[:count], self._ready[count:]
        self._tracker.update(each.record for each in taken)
        return taken

    def _update_s(self, records: Sequence[PromptRecord]) -> float:
        world = self._case.world
        prompts = sum(
            len(each.rows) * (world.prompt_tokens + bool(each.highest_level) * world.hint_tokens)
            for each in records
        )
        tokens = sum(each.trained_tokens for each in records) + prompts
        speed = self._speed.train_tokens_per_s * self._case.train_speed
        return tokens / (speed * self._case.train_replicas)

    # -- one prompt -----------------------------------------------------------------------------

    async def _rollout(self, number: int, step: int) -> PromptRecord:
        engine = SimulatedEngine(self._case.world, number, self._fleet)
        parts = RolloutParts(self._method, self._source, engine, _SETTINGS, Texts())
        problem = _problem(number)
        state = replace(self._tracker.state(problem.id), step=_FIRST_STEP + step)
        outcome = await PromptRollout(problem, state, parts).run(f"{number}-{step}", step)
        return outcome.record

    # -- the release's way ----------------------------------------------------------------------

    async def _released(self, numbers: list[int], step: int) -> None:
        records = await self._scheme(numbers, step)
        self._ready += [_Done(record, step) for record in records]

    async def _scheme(self, numbers: list[int], step: int) -> list[PromptRecord]:
        batch = Batch(len(numbers))

        async def one(number: int) -> PromptRecord:
            async def roll_out(method: Method, source: Any) -> Any:
                engine = SimulatedEngine(self._case.world, number, self._fleet)
                parts = RolloutParts(method, source, engine, _SETTINGS, Texts())
                state = self._tracker.state(str(number))
                return await PromptRollout(_problem(number), state, parts).run(str(number), step)

            write = self._writer(number)
            made = ReleaseRollout(roll_out, write, batch=batch, max_level=_LEVELS)
            return (await made.run(step)).record

        return await asyncio.gather(*(one(number) for number in numbers))

    def _writer(self, number: int) -> Any:
        async def write(step: int) -> HintResult:
            engine = SimulatedEngine(self._case.world, number, self._fleet)
            assert self._source is not None
            return await self._source.write(
                _problem(number),
                lambda messages, attempt: engine.write(
                    messages, seed_at(step, number, "hint", attempt)
                ),
            )

        return write


def _problem(number: int) -> Problem:
    messages = ({"role": "user", "content": "problem"},)
    return Problem(str(number), messages, "problem", "solution", "0")


def _unresolved(records: Sequence[PromptRecord]) -> float:
    """Return the share of all-wrong groups among those that were sampled without a hint."""
    bare = [each.rounds[0] for each in records if each.rounds[0].level == 0]
    return sum(not any(each.accuracies) for each in bare) / len(bare) if bare else 0.0


def simulate(case: Case) -> dict[str, Any]:
    """Return what a case costs: simulated seconds and counts per step."""

    async def run() -> dict[str, float]:
        return await Simulation(case).run()

    return asdict(case) | run_virtual(run())


def scale_lines(argv: Sequence[str]) -> Iterator[str]:
    """Yield a table row per case, as it is there; the ratio is to ``grpo`` in the same mode.

    ``signal`` is the number of prompts with signal per step; ``waits`` is the share of a step in
    which the trainer waits for rollouts.
    """
    yield (
        "arm | mode | replicas | speed | batch | sigma | unresolved | step s | waits | Mtokens | "
        f"age | evicted | signal | signal/h | to {BASELINE}"
    )
    base: dict[Case, dict[str, Any]] = {}
    for case in cases_of(argv):
        key = replace(case, arm=BASELINE)
        if key not in base:
            base[key] = simulate(key)
        found = base[key] if case == key else simulate(case)
        yield (
            f"{case.arm} | {case.mode} | {case.replicas} | {case.speed} | {case.batch} | "
            f"{case.world.sigma:g} | {case.world.unresolved:g} | {found['step_s']:.0f} | "
            f"{found['wait_s'] / found['step_s']:.2f} | {found['tokens'] / 1e6:.2f} | "
            f"{found['age']:.2f} | {found['evicted']:.1f} | {found['num_with_signal']:.0f} | "
            f"{3600 * found['num_with_signal'] / found['step_s']:.0f} | "
            f"{found['step_s'] / base[key]['step_s']:.2f}"
        )
