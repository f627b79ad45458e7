"""Ask the second judge about a sample of the verdicts, with a time limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Future

from recipe.hint.samples import SampleSettings
from recipe.run.errors import VerifierError
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item, Opinion, Verdict
from recipe.verify.second_judge import SECOND, Ask, opinion, question

logger = logging.getLogger(__name__)
_SECOND_TIMEOUT_S = 3.0
# What a prompt loses at most to the second judge, and questions that may wait for it.
_WAIT_S, _MAX_OPEN = 5.0, 256


def build_second_judge(settings: SampleSettings) -> SecondJudge | None:
    """Start its pool at once, so that no prompt waits for the imports; nothing at a share of 0."""
    if not settings.second_judge_share:
        return None
    pool = VerifierPool(1, _SECOND_TIMEOUT_S, grade_path=SECOND)
    pool.submit([Item(r"\boxed{1}", "1")])
    return SecondJudge(pool.submit)


class SecondJudge:
    """Asks another judge about verdicts that are already known.

    A question without an answer within ``wait_s`` seconds has no opinion, and one that comes while
    too many others wait is not asked; the pool ends what hangs.
    """

    def __init__(self, ask: Ask, wait_s: float = _WAIT_S) -> None:
        self._ask = ask
        self._wait_s = wait_s
        self._open: set[Future[list[Verdict]]] = set()

    async def ask(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> list[Opinion]:
        """Return one opinion per verdict, in order; raise nothing."""
        answers: dict[int, asyncio.Future[list[Verdict]]] = {}
        for index, (item, verdict) in enumerate(zip(items, verdicts, strict=True)):
            asked = question(item, verdict)
            if asked is None or len(self._open) >= _MAX_OPEN:
                continue
            try:
                answer = self._ask([asked])
            except VerifierError as problem:
                logger.warning("the second judge cannot be asked: %s", problem)
                continue
            self._open.add(answer)
            answer.add_done_callback(self._close)
            answers[index] = asyncio.wrap_future(answer)
            # One that fails after the limit is nobody's to read.
            answers[index].add_done_callback(lambda each: each.cancelled() or each.exception())
        opinions: list[Opinion] = ["not_asked"] * len(verdicts)
        if answers:
            await asyncio.wait(answers.values(), timeout=self._wait_s)
        for index, answer in answers.items():
            is_given = answer.done() and not answer.cancelled() and not answer.exception()
            opinions[index] = opinion(verdicts[index], answer.result()[0]) if is_given else "none"
        return opinions

    def _close(self, answer: Future[list[Verdict]]) -> None:
        self._open.discard(answer)
        if not answer.cancelled() and answer.exception():
            logger.warning("the second judge failed: %s", answer.exception())
