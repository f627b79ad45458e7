"""Conversations of several turns: outcomes by turn instead of a model, everything else real."""

from __future__ import annotations

import asyncio

from fakes import OneByOne, problem

from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.verify.schema import Verdict

GUIDE = 7  # as a turn


class TurnEngine(OneByOne):
    """Right or wrong by turn and row: ``right[turn]`` lists the responses of that turn.

    A token is a character; a response's text names its turn. Of the turn ``GUIDE`` the list says
    which feedback leaks.
    """

    def __init__(self, right, prompt_length=10_000, group_size=2):
        self.group_size = group_size
        self.right = {turn: list(each) for turn, each in right.items()}
        self.prompt_length = prompt_length
        self.seeds, self.max_tokens = [], []

    def render(self, messages, **_):
        return [ord(char) for each in messages for char in f"[{each['role']}]{each['content']}"]

    def fits(self, prompt_ids):
        return len(prompt_ids) <= self.prompt_length

    async def sample(self, prompt_ids, seed, rows, max_tokens):
        text = "".join(map(chr, prompt_ids))
        turn = GUIDE if text.startswith("[system]You are a tutor") else text.count("[assistant]")
        self.max_tokens.append(max_tokens)
        self.seeds += [seed + row for row in rows]
        return [
            Response([turn, self.right[turn].pop(0)], [0.0, 0.0], f"answer {turn}", False)
            for _ in rows
        ]

    def given_response(self, text):
        # Its text says what it is.
        return Response([0, int(text == "right")], [], text, False, is_given=True)

    async def grade(self, problem, responses):
        scores = [float(each.token_ids_T[1]) for each in responses]
        return [Verdict(score, "correct" if score else "wrong") for score in scores]

    async def leaks(self, problem, responses):
        return [each.token_ids_T[0] == GUIDE and each.token_ids_T[1] == 1 for each in responses]


async def roll_out(method, engine, *, step=1, sent_step=0, item=None):
    made = PromptRollout(
        item or problem(),
        ProblemState(step=step, sent_step=sent_step),
        RolloutParts(method, None, engine, HintSettings(), Texts()),
    )
    return await made.run("uid", step)


def play(method, engine, **more):
    return asyncio.run(roll_out(method, engine, **more))
