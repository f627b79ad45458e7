"""A scripted engine: outcomes per level instead of a model, everything else real."""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import replace

from recipe.hint.engine import Engine
from recipe.hint.hints.base import HintResult, WrittenText
from recipe.hint.hints.dataset import Increments
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Texts
from recipe.hint.record import Outcome
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict

GIVEN = -1  # as a level
LADDER = json.dumps({"level_1": "think", "level_2": "think. add", "level_3": "think. add. carry"})


def problem(solution: str = "one step, then the next", problem_id: str = "p1") -> Problem:
    messages = (
        {"role": "system", "content": "answer in a box"},
        {"role": "user", "content": "What is 1+1?"},
    )
    return Problem(problem_id, messages, "What is 1+1?", solution, "2", "test")


class OneByOne(Engine):
    """An engine that samples a prompt at a time, by a method of its own."""

    async def sample_each(self, prompts, seeds, rows, max_tokens=0):
        asked = zip(prompts, seeds, strict=True)
        return [await self.sample(prompt_ids, seed, rows, max_tokens) for prompt_ids, seed in asked]


class ScriptedEngine(OneByOne):
    """``outcomes[level]`` are the rewards of a group; a string is a verdict's reason instead.

    A token is a character, so a prompt's length is its text's. An answer's tokens are its level,
    its row and the seed that it was drawn with.
    """

    def __init__(
        self, outcomes, *, replies=(LADDER,), prompt_length=10_000, shuffle=None, texts=None
    ):
        self.outcomes = outcomes
        self.texts = texts or {}
        self.replies = list(replies)
        self.prompt_length = prompt_length
        self.seeds: list[int] = []
        self.prompts: list[str] = []
        self.write_seeds: list[int] = []
        self.num_sampled = 0
        self._random = random.Random(shuffle) if shuffle is not None else None

    def render(self, messages, **_):
        return [ord(char) for message in messages for char in message["content"]]

    def fits(self, prompt_ids):
        return len(prompt_ids) <= self.prompt_length

    def level_of(self, prompt_ids):
        text = "".join(map(chr, prompt_ids))
        if numbered := re.search(r"hint (\d+)$", text):
            return int(numbered[1])
        if "Here is a hint" in text:
            return text.rsplit("\n", 1)[-1].count(".") + 1
        begun = re.search(r"\?((?:think|x)[^\n]*)$", text)
        return begun[1].count(".") + 1 if begun else 0

    @property
    def group_size(self):
        return len(next(iter(self.outcomes.values())))

    async def sample(self, prompt_ids, seed, rows, max_tokens):
        await self._yield()
        self.seeds.append(seed)
        self.prompts.append("".join(map(chr, prompt_ids)))
        level = self.level_of(prompt_ids)
        self.num_sampled += len(rows)
        return [
            Response(
                [level, row, seed + row],
                [0.0, 0.0, 0.0],
                self.texts.get(level, f"{level}:{row}"),
                False,
            )
            for row in rows
        ]

    def given_response(self, text):
        """A text that begins with "cut" is too long, one with "wrong" wrong; others are right."""
        kind = (text.split() or [""])[0]
        return Response(
            [GIVEN, kind not in ("", "wrong"), 0], [], text, kind == "cut", is_given=True
        )

    async def write(self, messages, seed):
        await self._yield()
        self.write_seeds.append(seed)
        text = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return WrittenText(text, len(text))

    async def grade(self, problem, responses_G):
        await self._yield()
        verdicts = []
        for level, row, _ in (response.token_ids_T for response in responses_G):
            outcome = row if level == GIVEN else self.outcomes[level][row]
            if isinstance(outcome, str):
                verdicts.append(Verdict(0.0, outcome))
            else:
                verdicts.append(Verdict(float(outcome), "correct" if outcome else "wrong"))
        return verdicts

    async def _yield(self):
        if self._random is not None:
            for _ in range(self._random.randrange(4)):
                await asyncio.sleep(0)


class Numbered:
    """A set of hints of ``count`` hints "hint 1", "hint 2", ...; or a failure."""

    def __init__(self, count, status="ok"):
        self.count = count
        self.status = status

    async def write(self, problem, generate, *, num_before=0):
        if self.status != "ok":
            return HintResult(self.status)
        return HintResult("ok", tuple(f"hint {k}" for k in range(1, self.count + 1)))


def run(
    method: Method,
    outcomes,
    *,
    state: ProblemState | None = None,
    item: Problem | None = None,
    attempts: int = 3,
    step: int = 1,
    engine: ScriptedEngine | None = None,
    source=None,
    settings=None,
    **engine_settings,
) -> Outcome:
    """One prompt rollout to its end; ``settings`` are those of the rollout."""
    settings = dict(settings or {})
    if "too_long" in engine_settings:
        settings["too_long"] = engine_settings.pop("too_long")
    engine = engine or ScriptedEngine(outcomes, **engine_settings)
    state = replace(state or ProblemState(), step=step)
    made = make_rollout(
        method, engine, state=state, item=item, attempts=attempts, source=source, **settings
    )
    return asyncio.run(made.run("uid", step))


def make_rollout(
    method, engine, *, state=None, item=None, attempts=3, source=None, **settings
) -> PromptRollout:
    source = source or SelfGenerated(texts=Texts(), attempts=attempts, max_level=3)
    if method.increments > 1 and isinstance(source, SelfGenerated):
        source = Increments(source, method.increments)
    return PromptRollout(
        item or problem(),
        state or ProblemState(),
        RolloutParts(
            method=method,
            source=source if method.uses_hints else None,
            engine=engine,
            settings=HintSettings(**settings),
            texts=Texts(),
        ),
    )


class Balancer:
    """The two calls of verl's client that a group goes through."""

    def __init__(self, server):
        self.server = server
        self.open = 0

    async def _acquire_server(self, request_id, prompt_ids=()):
        self.open += 1
        return "server-0", self.server

    def _release_server(self, server_id, request_id=None):
        self.open -= 1
