"""The rollout of one prompt: the loop that every method runs in.

The model, the tokenizer and the verifier are injected (:class:`Engine`), so the whole search is
tested without any of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recipe.hint.conversations import conversations
from recipe.hint.credit.rows import CreditRow
from recipe.hint.engine import Engine
from recipe.hint.errors import TeacherSilentError
from recipe.hint.hints.base import Endpoint, HintResult, HintSource, WrittenText
from recipe.hint.hints.logprob_gain import logprob_gains
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Message, Texts
from recipe.hint.record import (
    Outcome,
    PromptRecord,
    RoundRecord,
    TrainedRow,
    pack_sample,
    verdict_counts,
)
from recipe.hint.schema import Opinion, Problem, ProblemState, Response, Verdict, seed_at
from recipe.hint.settings import HintSettings, style_of
from recipe.hint.together import together
from recipe.hint.turns import (
    Place,
    Prompt,
    PromptContext,
    Round,
    Row,
    Sample,
    Train,
    Turn,
    path,
    turn_at,
)


@dataclass(frozen=True, slots=True)
class RolloutParts:
    """What all prompt rollouts of a run share."""

    method: Method
    source: HintSource | None
    engine: Engine
    settings: HintSettings
    texts: Texts
    teacher: Endpoint | None = None


class PromptRollout:
    """One problem at one step."""

    def __init__(self, problem: Problem, state: ProblemState, parts: RolloutParts) -> None:
        self._problem = problem
        self._state = state.within(parts.method.max_level)
        self._method = parts.method
        self._source = parts.source
        self._teacher = parts.teacher
        self._engine = engine = parts.engine
        self._settings = parts.settings
        self._rounds: list[Round] = []
        self._writing: asyncio.Task[HintResult] | None = None
        self._hint_seconds = 0.0
        self._context = PromptContext(
            problem,
            parts.texts,
            style_of(parts.settings, parts.method),
            parts.settings.too_long,
            render=engine.render,
            render_follow_up=engine.render_follow_up,
            fits=engine.fits,
            hint_levels=self._hint_levels,
            turn=self._turn,
        )

    @property
    def rounds(self) -> Sequence[Round]:
        """What was sampled so far, in order."""
        return self._rounds

    async def run(self, uid: str, step: int) -> Outcome:
        """Sample until the method says what trains.

        Args:
            uid: Key of this prompt rollout in the queue.
            step: Training step, a coordinate of every seed.
        """
        self._step = step
        rounds = self._rounds
        decision = self._method.open(self._problem, self._state)
        try:
            while isinstance(decision, Sample):
                rounds.append(await self._sample(decision))
                decision = self._method.react(self._problem, self._state, rounds)
            written = await self._writing if self._writing else HintResult("none")
        finally:
            if self._writing:
                self._writing.cancel()
        opinions = await self._second_opinions()
        return self._outcome(uid, decision, written, await self._gains(decision), opinions)

    # -- one round ------------------------------------------------------------------------------

    async def _sample(self, request: Sample) -> Round:
        if request.writes_hints_early:
            self._start_writing()
        if request.parents == ():
            return Round(request, is_whole=False)
        parents = request.parents or (None,)
        made = [await self._prompt(request, parent) for parent in parents]
        failed = next((prompt for prompt in made if not prompt.is_usable), made[0])
        hint = made[0].hint
        usable = [
            (prompt, parent)
            for prompt, parent in zip(made, parents, strict=True)
            if prompt.is_usable
        ]
        if not usable:
            return Round(request, (), failed.status, hint, is_whole=False)
        start = time.perf_counter()
        size = self._engine.group_size
        count = request.count(size)
        turns = await self._turns(request, usable, range(count))
        if request.completes and count < size:
            found = {
                turn.parent
                for turn in turns
                if turn.verdict and not turn.verdict.is_known_as(request.unless)
            }
            if again := [each for each in usable if each[1] in found]:
                turns += await self._turns(request, again, range(count, size))
        seconds = time.perf_counter() - start
        status = failed.status
        if request.asks_teacher and len(turns) < count * len(usable):
            if not turns:
                raise TeacherSilentError(request.role)
            status = "generation_failed"
        is_whole = len(turns) == request.whole_size(size) * len(parents)
        return Round(request, tuple(turns), status, hint, seconds, is_whole)

    async def _prompt(self, request: Sample, parent: Place | None) -> Prompt:
        return await request.prompt.build(self._context, self._turn(parent) if parent else None)

    async def _turns(
        self, request: Sample, made: Sequence[tuple[Prompt, Place | None]], rows: range
    ) -> list[Turn]:
        """Sample, grade and search the rows of every prompt, with one request each."""
        prompts = [
            prompt.prompt_ids_T or self._engine.render(prompt.messages) for prompt, _ in made
        ]
        seeds = [self._seed(*self._seed_coordinates(request, parent)) for _, parent in made]
        groups = await self._responses(request, made, prompts, seeds, rows)
        places = [index for index, group in enumerate(groups) for _ in group]
        responses = [
            replace(response, text=prompt.prefill + self._engine.continuation(ids, response))
            if prompt.prefill
            else response
            for (prompt, _), ids, group in zip(made, prompts, groups, strict=True)
            for response in group
        ]
        verdicts: Sequence[Verdict | None] = [None] * len(responses)
        if request.is_graded:
            verdicts = await self._engine.grade(self._problem, responses)
        leaks = [False] * len(responses)
        if request.finds_leaks:
            found = await self._engine.leaks(self._problem, responses)
            # Feedback may repeat the answer of a right attempt: to withhold it would tell the
            # solver that the attempt is right.
            parents = [made[at][1] for at in places]
            leaks = [
                leak and not (parent and self._turn(parent).is_right)
                for leak, parent in zip(found, parents, strict=True)
            ]
        return [
            Turn(made[at][0].messages, prompts[at], response, verdict, made[at][1], leaks=leak)
            for at, response, verdict, leak in zip(places, responses, verdicts, leaks, strict=True)
        ]

    async def _responses(
        self,
        request: Sample,
        made: Sequence[tuple[Prompt, Place | None]],
        prompts: Sequence[list[int]],
        seeds: Sequence[int],
        rows: range,
    ) -> list[list[Response]]:
        """Return the responses to every prompt: given, written by the teacher, or sampled."""
        if request.given:
            return [[self._engine.given_response(text) for text in request.given] for _ in made]
        if request.asks_teacher:
            return await together(
                self._replies(request, prompt, seed, rows)
                for (prompt, _), seed in zip(made, seeds, strict=True)
            )
        if len(prompts) == 1:
            return [await self._engine.sample(prompts[0], seeds[0], rows, request.sampling)]
        seeds = [seed + rows.start for seed in seeds]
        return await self._engine.sample_each(prompts, seeds, len(rows), request.sampling)

    async def _replies(
        self, request: Sample, prompt: Prompt, seed: int, rows: range
    ) -> list[Response]:
        """Return the texts that the teacher has answered with."""
        if self._teacher is None:
            raise ValueError("this method asks a teacher but none is set up")
        own: dict[str, Any] = request.sampling.overrides() if request.sampling else {}
        how = self._teacher.sampling._replace(**own)
        replies = await together(
            self._teacher.reply(prompt.messages, how._replace(seed=seed + row)) for row in rows
        )
        return [
            Response([], [], each.text, is_truncated=each.is_cut)
            for each in replies
            if isinstance(each, WrittenText)
        ]

    def _seed_coordinates(self, request: Sample, parent: Place | None) -> tuple[object, ...]:
        """Return coordinates that set the seeds of a request apart from this rollout's others."""
        if parent:
            return request.level, request.prompt.kind, len(self._rounds), *parent
        # A level that is sampled again gets new seeds, unless a whole group completes its probe.
        before = sum(
            (each.is_whole or (each.is_sampled and not each.request.completes))
            and each.request.parents is None
            and each.level == request.level
            for each in self._rounds
        )
        return (request.level, "again", before) if before else (request.level,)

    def _seed(self, *coordinates: object) -> int:
        repeat = self._state.repeat
        again = ("repeat", repeat) if repeat else ()
        return seed_at(self._settings.seed, self._step, self._problem.id, *coordinates, *again)

    def _turn(self, place: Place) -> Turn:
        return turn_at(self._rounds, place)

    # -- hints ----------------------------------------------------------------------------------

    async def _hint_levels(self) -> HintResult:
        return await self._start_writing()

    def _start_writing(self) -> asyncio.Task[HintResult]:
        """Have the hints written, once."""
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_hints())
        return self._writing

    async def _write_hints(self) -> HintResult:
        if self._source is None:
            raise ValueError("this method asks for hints but has no source of them")
        start = time.perf_counter()

        async def generate(messages: list[Message], attempt: int) -> WrittenText:
            return await self._engine.write(messages, self._seed("hint", attempt))

        num_before = self._state.visits
        written = await self._source.write(self._problem, generate, num_before=num_before)
        self._hint_seconds = time.perf_counter() - start
        return written

    # -- the outcome ----------------------------------------------------------------------------

    def _outcome(
        self,
        uid: str,
        train: Train,
        written: HintResult,
        gains: tuple[float, ...],
        opinions: dict[Place, Opinion],
    ) -> Outcome:
        rows = tuple(self._trained(row, uid) for row in train.rows)
        # Others are there for the critic only. A prompt of which nothing trains counts all.
        trains = tuple(row for row in train.rows if row.weight or row.kl_coef)
        counted = trains or train.rows
        groups = tuple(row.group for row in counted)
        has_turns = any(each.request.parents is not None for each in self._rounds)
        trained = [self._turn(row.place) for row in counted]
        sampled = [turn for turn in trained if not turn.response.is_given]
        verdicts = [turn.verdict for turn in sampled if turn.verdict]
        is_unhinted = self._settings.conditioning == "unhinted"
        record = PromptRecord(
            problem_id=self._problem.id,
            uid=uid,
            step=self._step,
            rounds=tuple(RoundRecord.of(each) for each in self._rounds),
            rows=tuple(row.place for row in counted),
            rewards=tuple(row.reward for row in counted),
            accuracies=tuple(verdict.score for verdict in verdicts),
            groups=groups if any(groups) else (),
            trained_tokens=sum(len(turn.response.token_ids_T) for turn in sampled),
            hint_calls=written.calls,
            hint_tokens=written.tokens,
            hint_seconds=round(self._hint_seconds, 4),
            leaked_levels=written.leaked,
            on_policy=not (is_unhinted and any(self._level(row) for row in train.rows)),
            reasons=dict(Counter(verdict.reason for verdict in verdicts)),
            is_off_schedule=self._rounds[0].request.is_off_schedule,
            is_dropped=train.is_dropped or not trains,
            logprob_gains=gains,
            conversations=conversations(self._rounds) if has_turns else (),
            **verdict_counts(self._problem, self._rounds, opinions),
        )
        settings, sample = self._settings.samples, b""
        if settings.prompts_per_step:
            rewards = {row.place: row.reward for row in train.rows}
            sample = pack_sample(
                self._problem, self._rounds, rewards, opinions, settings.text_bytes
            )
        return Outcome(rows, record, sample)

    def _trained(self, row: Row, uid: str) -> TrainedRow:
        turn = self._turn(row.place)
        prompt_ids_T = turn.prompt_ids_T
        if self._settings.conditioning == "unhinted" and self._level(row) and not turn.parent:
            prompt_ids_T = self._engine.render(self._problem.messages)
        steps = path(self._rounds, row.place)
        credit = CreditRow(
            problem_id=self._problem.id,
            prompt_uid=uid,
            group=row.group,
            role=self._rounds[row.place.round].request.role,
            turn=len(steps) - 1,
            session=self._session(steps[0]),
            reward=row.reward,
            kl_coef=row.kl_coef,
            weight=row.weight,
            is_given=turn.response.is_given,
            facts=row.facts,
        )
        return TrainedRow(prompt_ids_T, turn, credit)

    def _session(self, first: Place) -> int:
        """Return the index of a conversation: the number of first turns before it."""
        earlier = self._rounds[: first.round]
        return first.turn + sum(not turn.parent for each in earlier for turn in each.turns)

    def _level(self, row: Row) -> int:
        return self._rounds[row.place.round].level

    async def _gains(self, train: Train) -> tuple[float, ...]:
        """Return the log-prob gain of each right and hinted response that trains."""
        every = self._settings.logprob_gain_every
        if not every or self._step % every:
            return ()
        turns = [self._turn(row.place) for row in train.rows if self._level(row)]
        right = [turn for turn in turns if turn.verdict and turn.verdict.score > 0]
        return await logprob_gains(
            [(turn.prompt_ids_T, list(turn.response.token_ids_T)) for turn in right],
            self._engine.render(self._problem.messages),
            self._engine.log_probs,
        )

    async def _second_opinions(self) -> dict[Place, Opinion]:
        """Ask the second judge about a share of the verdicts."""
        limit = self._settings.samples.second_judge_share * 2**31
        asked = {
            Place(number, place): turn
            for number, each in enumerate(self._rounds)
            if not each.request.given
            for place, turn in enumerate(each.turns)
            if turn.verdict and self._seed("second judge", number, place) < limit
        }
        if not asked:
            return {}
        found = await self._engine.second_opinions(
            self._problem,
            [turn.response for turn in asked.values()],
            [turn.verdict for turn in asked.values() if turn.verdict],
        )
        return dict(zip(asked, found, strict=True))
