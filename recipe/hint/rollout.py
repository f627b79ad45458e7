"""Roll out one prompt: the loop in which every method runs, testable without a model."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from recipe.hint.conversations import conversations
from recipe.hint.credit.base import CreditRow
from recipe.hint.engine import Engine
from recipe.hint.hints.base import HintResult, HintSource, WrittenText
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Message, Texts
from recipe.hint.record import Outcome, PromptRecord, PublishedRow, RoundRecord, verdict_counts
from recipe.hint.samples import pack_sample
from recipe.hint.schema import ProblemState, Response, seed_at
from recipe.hint.settings import HintSettings
from recipe.hint.turns import (
    Place,
    Prompt,
    PromptContext,
    Round,
    Row,
    Sample,
    Train,
    Turn,
    conversation_to,
    turn_at,
)
from recipe.problems.schema import Problem
from recipe.run.errors import TeacherSilentError
from recipe.run.together import gather_or_cancel
from recipe.verify.schema import Verdict

if TYPE_CHECKING:  # only a run with one imports it
    from recipe.hint.hints.teacher import Teacher


@dataclass(frozen=True, slots=True)
class RolloutParts:
    """What all prompt rollouts of a run share; without ``source`` no hints are written."""

    method: Method
    source: HintSource | None
    engine: Engine
    settings: HintSettings
    texts: Texts
    teacher: Teacher | None = None


class _Branch(NamedTuple):
    """One prompt of a round, of the problem or of one parent; row i has the seed ``seed + i``."""

    prompt: Prompt
    prompt_ids_T: Sequence[int]
    parent: Place | None
    seed: int


class PromptRollout:
    """Roll out one problem at one step; each object runs once."""

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
        self._context = PromptContext(
            problem,
            parts.texts,
            parts.settings.style or parts.method.style,
            parts.settings.too_long,
            render=engine.render,
            fits=engine.fits,
            write_hints=self._start_writing,
            turn=self._turn_at,
        )

    @property
    def rounds(self) -> Sequence[Round]:
        """What was sampled so far, in order."""
        return self._rounds

    @property
    def first_seed(self) -> int:
        """Seed of the first response to the problem, after :meth:`run`; the i-th has i more."""
        return self._seed(self._rounds[0].level)

    async def run(self, uid: str, step: int) -> Outcome:
        """Sample until the method decides what to train on.

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
        sample, kept = b"", self._settings.samples
        if kept.prompts_per_step:
            rewards = {row.place: row.reward for row in decision.rows}
            sample = pack_sample(self._problem, rounds, rewards, kept.text_bytes)
        published = tuple(self._trained_row(row, uid) for row in decision.rows)
        return Outcome(published, self._record(uid, decision, written), sample)

    # -- one round ------------------------------------------------------------------------------

    async def _sample(self, request: Sample) -> Round:
        """Build the prompts, then sample and grade the turns of those that could be built."""
        if request.writes_hints_early:
            self._start_writing()
        if request.parents == ():
            return Round(request, is_whole=False)
        parents = request.parents or (None,)
        built = [
            (parent, await request.prompt.build(self._context, parent and self._turn_at(parent)))
            for parent in parents
        ]
        branches = [
            _Branch(
                prompt,
                prompt.prompt_ids_T or self._engine.render(prompt.messages),
                parent,
                self._seed_of(request, parent),
            )
            for parent, prompt in built
            if prompt.is_usable
        ]
        if not branches:
            return self._round(request, built, turns=())
        size = self._engine.group_size
        count = request.count(size)
        turns = await self._sample_rows(request, branches, range(count))
        if request.is_probe:  # one that is not all wrong becomes a group
            if any(turn.is_right or not turn.is_graded for turn in turns):
                turns += await self._sample_rows(request, branches, range(count, size))
        return self._round(request, built, turns)

    def _round(
        self,
        request: Sample,
        built: Sequence[tuple[Place | None, Prompt]],
        turns: Sequence[Turn],
    ) -> Round:
        """Return the round of these turns; ``built`` has every parent's prompt, usable or not.

        Raises:
            TeacherSilentError: If the teacher was to write turns and wrote none.
        """
        prompts = [prompt for _, prompt in built]
        status = next((each for each in prompts if not each.is_usable), prompts[0]).status
        size = self._engine.group_size
        num_asked = request.count(size) * sum(each.is_usable for each in prompts)
        if request.asks_teacher and len(turns) < num_asked:
            if not turns:
                raise TeacherSilentError(request.role)
            status = "generation_failed"
        is_whole = len(turns) == size
        if request.parents is not None:
            is_whole = len(turns) == request.count(size) * len(request.parents) > 0
        without = tuple(parent for parent, each in built if parent and not each.is_usable)
        return Round(request, tuple(turns), status, prompts[0].hint, is_whole, without)

    async def _sample_rows(
        self, request: Sample, branches: Sequence[_Branch], rows: range
    ) -> list[Turn]:
        """Return turns ``rows`` of each branch, in order, graded and searched for leaks."""
        groups = await self._responses(request, branches, rows)
        origins = [branch for branch, group in zip(branches, groups, strict=True) for _ in group]
        # With the beginning that the prompt already contains.
        responses = [
            replace(each, text=origin.prompt.prefill + each.text) if origin.prompt.prefill else each
            for origin, each in zip(origins, itertools.chain.from_iterable(groups), strict=True)
        ]
        verdicts: Sequence[Verdict | None] = [None] * len(responses)
        if request.is_graded:
            verdicts = await self._engine.grade(self._problem, responses)
        leaks = [False] * len(responses)
        if request.finds_leaks:
            # Feedback may repeat the answer of a right attempt: withholding it would tell the
            # solver that the attempt is right.
            parents = [each.parent and self._turn_at(each.parent) for each in origins]
            searched = [n for n, each in enumerate(parents) if not (each and each.is_right)]
            found = await self._engine.leaks(self._problem, [responses[n] for n in searched])
            for n, has_leak in zip(searched, found, strict=True):
                leaks[n] = has_leak
        return [
            Turn(
                origin.prompt.messages, origin.prompt_ids_T, response, verdict, origin.parent, leak
            )
            for origin, response, verdict, leak in zip(
                origins, responses, verdicts, leaks, strict=True
            )
        ]

    async def _responses(
        self, request: Sample, branches: Sequence[_Branch], rows: range
    ) -> list[list[Response]]:
        """Return the responses to every prompt: given, written by the teacher, or sampled."""
        if request.given:
            return [[self._engine.given_response(text) for text in request.given] for _ in branches]
        if request.asks_teacher:
            return await gather_or_cancel(
                self._replies(request, branch, rows) for branch in branches
            )
        prompts = [branch.prompt_ids_T for branch in branches]
        seeds = [branch.seed for branch in branches]
        return await self._engine.sample_each(prompts, seeds, rows, request.max_tokens)

    async def _replies(self, request: Sample, branch: _Branch, rows: range) -> list[Response]:
        """Return the teacher's texts, without those that it failed to write."""
        assert self._teacher is not None, "a method without a teacher asked one"
        sampling = self._teacher.sampling
        if request.max_tokens:
            sampling = sampling._replace(max_tokens=min(sampling.max_tokens, request.max_tokens))
        replies = await gather_or_cancel(
            self._teacher.reply(branch.prompt.messages, sampling._replace(seed=branch.seed + row))
            for row in rows
        )
        return [
            Response([], [], each.text, is_truncated=each.is_cut)
            for each in replies
            if isinstance(each, WrittenText)
        ]

    def _turn_at(self, place: Place) -> Turn:
        return turn_at(self._rounds, place)

    # -- seeds: no two requests share one, except a probe with the group it becomes --------------

    def _seed_of(self, request: Sample, parent: Place | None) -> int:
        if parent:
            return self._seed(request.prompt.level, request.prompt.kind, len(self._rounds), *parent)
        # A probe that was not completed leaves its seeds to the whole group, which begins alike.
        num_before = sum(
            each.is_whole or not each.request.is_probe
            for each in self._rounds
            if each.level == request.prompt.level and each.turns and each.request.parents is None
        )
        return self._seed(request.prompt.level, *(("again", num_before) if num_before else ()))

    def _seed(self, *coordinates: object) -> int:
        repeat, sent = self._state.repeat, self._state.sent_step
        again: tuple[object, ...] = ("repeat", repeat) if repeat else ()
        # A resumed run sends prompts of several steps again at one.
        again += ("sent", sent) if sent not in (0, self._step) else ()
        return seed_at(self._settings.seed, self._step, self._problem.id, *coordinates, *again)

    # -- hints ----------------------------------------------------------------------------------

    def _start_writing(self) -> asyncio.Task[HintResult]:
        """Start to write the hints at the first call; return the same task at every call."""
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_hints())
        return self._writing

    async def _write_hints(self) -> HintResult:
        assert self._source is not None, "a method without hints asked for them"

        async def generate(messages: list[Message], attempt: int) -> WrittenText:
            return await self._engine.write(messages, self._seed("hint", attempt))

        num_before = self._state.visits
        return await self._source.write(self._problem, generate, num_before=num_before)

    # -- the outcome ----------------------------------------------------------------------------

    def _record(self, uid: str, train: Train, written: HintResult) -> PromptRecord:
        # Rows without weight and KL are for the critic only. Where nothing trains, all rows count.
        with_signal = tuple(row for row in train.rows if row.weight or row.kl_coef)
        counted = with_signal or train.rows
        groups = tuple(row.group for row in counted)
        is_multi_turn = any(each.request.parents is not None for each in self._rounds)
        turns = [self._turn_at(row.place) for row in counted]
        sampled = [turn for turn in turns if not turn.response.is_given]
        verdicts = [turn.verdict for turn in sampled if turn.verdict]
        is_unhinted = self._settings.conditioning == "unhinted"
        return PromptRecord(
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
            hint_fault="" if written.status == "ok" else written.detail.partition(":")[0],
            leaked_levels=written.leaked,
            on_policy=not (is_unhinted and any(self._level(row) for row in train.rows)),
            reasons=dict(Counter(verdict.reason for verdict in verdicts)),
            is_off_schedule=self._rounds[0].request.is_off_schedule,
            is_dropped=train.is_dropped or not with_signal,
            conversations=conversations(self._rounds) if is_multi_turn else (),
            **verdict_counts(self._rounds),
        )

    def _trained_row(self, row: Row, uid: str) -> PublishedRow:
        turn = self._turn_at(row.place)
        prompt_ids_T = turn.prompt_ids_T
        if self._settings.conditioning == "unhinted" and self._level(row) and not turn.parent:
            prompt_ids_T = self._engine.render(self._problem.messages)
        first, *later = conversation_to(self._rounds, row.place)
        earlier = [turn for each in self._rounds[: first.round] for turn in each.turns]
        credit = CreditRow(
            problem_id=self._problem.id,
            prompt_uid=uid,
            group=row.group,
            role=self._rounds[row.place.round].request.role,
            turn=len(later),
            session=first.turn + sum(not turn.parent for turn in earlier),
            reward=row.reward,
            kl_coef=row.kl_coef,
            weight=row.weight,
            is_given=turn.response.is_given,
            facts=row.facts,
        )
        return PublishedRow(prompt_ids_T, turn, credit)

    def _level(self, row: Row) -> int:
        return self._rounds[row.place.round].level
