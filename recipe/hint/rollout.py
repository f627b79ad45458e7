"""One visit of one problem: the loop that every method runs in.

Pure in the sense that matters: the model, the tokenizer and the verifier are injected
(:class:`Engine`), so the whole search is tested without any of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from recipe.hint.hints.base import HintResult, HintSource, Reply
from recipe.hint.hints.engine import Engine, Group, Response
from recipe.hint.hints.fitting import cut_at_sentence
from recipe.hint.hints.reliance import hint_reliance
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Message, Texts, with_hint
from recipe.hint.samples import Answer, SampleSettings, Tried, pack_sample, verdict_counts
from recipe.hint.schema import (
    Attempt,
    HintStatus,
    Keep,
    Opinion,
    Plan,
    Problem,
    ProblemState,
    PromptRecord,
)
from recipe.hint.seeds import seed_at
from recipe.hint.verify import format_score

__all__ = ["Group", "Outcome", "Response", "PromptRollout", "RolloutSettings"]


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What a visit reads of the configuration; see the ``hint:`` node."""

    texts: Texts
    style: str = "paper"
    too_long: str = "cut"
    seed: int = 1
    conditioning: str = "hinted"
    reliance_every: int = 0
    samples: SampleSettings = field(default_factory=SampleSettings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision, the rollouts it keeps and the record of how it came about.

    ``borrowed`` are rollouts of other prompts (another hint) that train in the same group;
    ``sample`` holds excerpts of all that was sampled.
    """

    group: Group
    record: PromptRecord
    borrowed: tuple[Group, ...] = ()
    sample: bytes = b""

    @property
    def groups(self) -> tuple[Group, ...]:
        """All that train, the group's own rollouts first."""
        return (self.group, *self.borrowed)


class PromptRollout:
    """One problem at one step."""

    def __init__(
        self,
        problem: Problem,
        state: ProblemState,
        *,
        method: Method,
        source: HintSource | None,
        engine: Engine,
        settings: RolloutSettings,
    ) -> None:
        self._problem = problem
        self._history = state
        self._method = method
        self._source = source
        self._engine = engine
        self._settings = settings
        self._groups: list[Group | None] = []
        self._hints: list[str] = []
        self._writing: asyncio.Task[HintResult] | None = None
        self._hint_seconds = 0.0

    async def run(self, uid: str, step: int) -> Outcome:
        """Sample until the method keeps a group.

        Args:
            uid: Key of this visit in the queue.
            step: Training step, a coordinate of every seed.
        """
        attempts: list[Attempt] = []
        decision = planned = self._method.open(self._problem, self._history)
        try:
            while isinstance(decision, Plan):
                attempts.append(await self._sample(decision, step))
                decision = self._method.react(self._problem, attempts)
            hint_levels = await self._writing if self._writing else HintResult("none")
        finally:
            if self._writing:
                self._writing.cancel()
        reliance = await self._reliance(attempts, decision, step)
        record = self._record(attempts, decision, planned=planned, hint_levels=hint_levels)
        tried = self._tried(attempts, decision, await self._second_opinions(step))
        counts = verdict_counts(self._problem, tried)
        record = replace(record, uid=uid, step=step, reliance=reliance, **counts)
        group, *borrowed = self._kept(attempts, decision)
        samples = self._settings.samples
        sample = pack_sample(self._problem, tried, samples) if samples.prompts_per_step else b""
        return Outcome(group, record, tuple(borrowed), sample)

    async def _sample(self, plan: Plan, step: int) -> Attempt:
        if plan.writes_early:
            self._start_writing(step)
        status, prompt_ids, hint = await self._prompt(plan, step)
        self._hints.append(hint)
        if status not in ("none", "ok", "cut"):
            self._groups.append(None)
            return Attempt(plan, status, is_whole=False)
        start = time.perf_counter()
        seed = seed_at(self._settings.seed, step, self._problem.id, plan.level)
        group = await self._group(prompt_ids, seed, plan)
        self._groups.append(group)
        return Attempt(
            plan,
            status,
            rewards_G=tuple(verdict.score for verdict in group.verdicts_G),
            num_ungraded=sum(verdict.is_ungraded for verdict in group.verdicts_G),
            rollout_tokens=_num_tokens(group),
            seconds=time.perf_counter() - start,
            is_whole=len(group.responses_G) == self._engine.group_size,
        )

    async def _group(self, prompt_ids: list[int], seed: int, plan: Plan) -> Group:
        """The planned rollouts; a probe that finds something is completed to a whole group."""
        size = self._engine.group_size
        count = min(plan.rollouts or size, size)
        responses_G = await self._engine.answer(prompt_ids, seed, range(count))
        verdicts_G = await self._engine.grade(self._problem, responses_G)
        is_found = any(verdict.score > 0 or verdict.is_ungraded for verdict in verdicts_G)
        if plan.completes and is_found and count < size:
            rest = await self._engine.answer(prompt_ids, seed, range(count, size))
            responses_G = responses_G + rest
            verdicts_G = verdicts_G + await self._engine.grade(self._problem, rest)
        rewards_G = tuple(
            self._method.reward(verdict.trained, format_score(response.text))
            for response, verdict in zip(responses_G, verdicts_G, strict=True)
        )
        return Group(prompt_ids, responses_G, verdicts_G, rewards_G)

    async def _prompt(self, plan: Plan, step: int) -> tuple[HintStatus, list[int], str]:
        messages = self._problem.messages
        if plan.level == 0:
            return "none", self._engine.render(messages), ""
        hint_levels = await self._start_writing(step)
        if hint_levels.status != "ok":
            return hint_levels.status, [], ""
        hint = hint_levels.hint_levels.at(plan.level)
        return self._hinted(hint) if hint else ("leaked", [], "")

    def _hinted(self, hint: str) -> tuple[HintStatus, list[int], str]:
        """Token ids of the hinted prompt and its hint; one that does not fit is cut or skipped."""

        def ids(text: str) -> list[int]:
            conversation = with_hint(
                self._problem.messages, text, self._settings.texts, self._settings.style
            )
            return self._engine.render(conversation)

        def fits(text: str) -> bool:
            return self._engine.fits(ids(text))

        if fits(hint):
            return "ok", ids(hint), hint
        shorter = cut_at_sentence(hint, fits) if self._settings.too_long == "cut" else ""
        return ("cut", ids(shorter), shorter) if shorter else ("too_long", [], hint)

    def _start_writing(self, step: int) -> asyncio.Task[HintResult]:
        """The hint levels of this visit, written once."""
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_hints(step))
        return self._writing

    async def _write_hints(self, step: int) -> HintResult:
        if self._source is None:
            raise ValueError("this method plans hints but has no source of hints")
        start = time.perf_counter()

        async def generate(messages: list[Message], attempt: int) -> Reply:
            seed = seed_at(self._settings.seed, step, self._problem.id, "hint", attempt)
            return await self._engine.write(messages, seed)

        visits = self._history.visits
        hint_levels = await self._source.hint_levels(self._problem, generate, visits=visits)
        self._hint_seconds = time.perf_counter() - start
        return hint_levels

    def _kept(self, attempts: list[Attempt], keep: Keep) -> list[Group]:
        """The rollouts that train, by the attempt they come from."""
        rows_of: dict[int, list[int]] = {keep.attempt: list(keep.rows)}
        for attempt, row in keep.borrowed:
            rows_of.setdefault(attempt, []).append(row)
        groups = []
        for attempt, rows in rows_of.items():
            group = self._groups[attempt]
            assert group is not None, "a method kept an attempt whose hint had failed"
            prompt_ids = group.prompt_ids_T
            if self._settings.conditioning == "unhinted" and attempts[attempt].plan.level:
                prompt_ids = self._engine.render(self._problem.messages)
            groups.append(
                Group(
                    prompt_ids,
                    [group.responses_G[row] for row in rows],
                    [group.verdicts_G[row] for row in rows],
                    tuple(0.0 if keep.is_dropped else group.scores_G[row] for row in rows),
                )
            )
        return groups

    async def _reliance(self, attempts: list[Attempt], keep: Keep, step: int) -> tuple[float, ...]:
        """Per right rollout under a hint that trains: how much likelier the hint makes a token."""
        if not self._settings.reliance_every or step % self._settings.reliance_every:
            return ()
        answers = []
        for attempt, row in (*((keep.attempt, row) for row in keep.rows), *keep.borrowed):
            group = self._groups[attempt]
            if group and attempts[attempt].plan.level and group.verdicts_G[row].score > 0:
                answers.append((group.prompt_ids_T, group.responses_G[row].token_ids_T))
        bare_ids = self._engine.render(self._problem.messages)
        return await hint_reliance(answers, bare_ids, self._engine.score)

    async def _second_opinions(self, step: int) -> dict[tuple[int, int], Opinion]:
        """Ask the second judge about a share of the rollouts; by (attempt, row)."""
        here = (self._settings.seed, step, self._problem.id, "second judge")
        limit = self._settings.samples.second_judge_share * 2**31
        asked = {
            (attempt, row): pair
            for attempt, group in enumerate(self._groups)
            if group
            for row, pair in enumerate(zip(group.responses_G, group.verdicts_G, strict=True))
            if seed_at(*here, attempt, row) < limit
        }
        if not asked:
            return {}
        responses, verdicts = map(list, zip(*asked.values(), strict=True))
        found = await self._engine.second_opinions(self._problem, responses, verdicts)
        return dict(zip(asked, found, strict=True))

    def _tried(
        self, attempts: list[Attempt], keep: Keep, opinions: dict[tuple[int, int], Opinion]
    ) -> list[Tried]:
        """All that was sampled, whether it trains or not."""
        kept = {*((keep.attempt, row) for row in keep.rows), *keep.borrowed}

        def answers(place: int) -> Iterator[Answer]:
            if (group := self._groups[place]) is None:
                return
            for row, response in enumerate(group.responses_G):
                yield Answer(
                    response.text,
                    group.verdicts_G[row],
                    group.scores_G[row],
                    trains=(place, row) in kept,
                    second=opinions.get((place, row), "not_asked"),
                )

        return [
            Tried(each.plan.level, each.hint_status, self._hints[place], tuple(answers(place)))
            for place, each in enumerate(attempts)
        ]

    def _record(
        self, attempts: list[Attempt], keep: Keep, *, planned: Plan, hint_levels: HintResult
    ) -> PromptRecord:
        groups = self._kept(attempts, keep)
        own = attempts[keep.attempt].rewards_G
        kept = (*((keep.attempt, row) for row in keep.rows), *keep.borrowed)
        is_whole = not keep.borrowed and len(keep.rows) == len(own)
        trained = tuple(score for group in groups for score in group.scores_G)
        hinted = any(attempts[attempt].plan.level for attempt, _ in kept)
        reasons = Counter(verdict.reason for group in groups for verdict in group.verdicts_G)
        return PromptRecord(
            problem_id=self._problem.id,
            uid="",
            step=0,
            planned_level=planned.level,
            accepted_level=attempts[keep.attempt].plan.level,
            levels=tuple(attempt.plan.level for attempt in attempts),
            hint_statuses=tuple(attempt.hint_status for attempt in attempts),
            rewards=tuple(attempt.rewards_G for attempt in attempts),
            num_ungraded=tuple(attempt.num_ungraded for attempt in attempts),
            rollout_tokens=tuple(attempt.rollout_tokens for attempt in attempts),
            seconds=tuple(round(attempt.seconds, 4) for attempt in attempts),
            accepted=keep.attempt,
            hint_calls=hint_levels.calls,
            hint_tokens=hint_levels.tokens,
            leaked_levels=hint_levels.leaked,
            hint_seconds=round(self._hint_seconds, 4),
            on_policy=not (hinted and self._settings.conditioning == "unhinted"),
            reasons=dict(reasons),
            kept=() if is_whole else kept,
            trained_rewards=() if is_whole and trained == own else trained,
            trained_tokens=sum(map(_num_tokens, groups)),
            is_plain=planned.is_plain,
            is_dropped=keep.is_dropped,
        )


def _num_tokens(group: Group) -> int:
    return sum(len(response.token_ids_T) for response in group.responses_G)
