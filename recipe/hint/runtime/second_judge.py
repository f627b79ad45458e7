"""The second judge of training: math-verify, in processes of its own that can be killed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Future

from recipe.hint.errors import VerifierError
from recipe.hint.runtime.engine import Asks
from recipe.hint.samples import SampleSettings
from recipe.hint.schema import Item, Opinion, Verdict
from recipe.hint.verify import VerifierPool
from recipe.hint.verify.audit import SECOND, Pool, opinion, question

logger = logging.getLogger(__name__)
_SECOND_TIMEOUT_S = 3.0
# What a prompt loses at most to the second judge, and questions that may wait for it.
_WAIT_S, _MAX_OPEN = 5.0, 256


def build_second_judge(settings: SampleSettings) -> Asks | None:
    """The second judge, started at once so that no prompt waits for its imports; or none."""
    if not settings.second_judge_share:
        return None
    pool = VerifierPool(1, _SECOND_TIMEOUT_S, grade_path=SECOND)
    pool.submit([Item(r"\boxed{1}", "1")])
    return SecondJudge(pool)


class SecondJudge:
    """Asks another judge about verdicts that are given already, and never for long.

    A question without an answer in time, or while too many others wait, has no opinion; the pool
    ends what hangs.
    """

    def __init__(self, pool: Pool, wait_s: float = _WAIT_S) -> None:
        self._pool = pool
        self._wait_s = wait_s
        self._open: set[Future[list[Verdict]]] = set()

    async def ask(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> list[Opinion]:
        """One opinion per verdict, in order."""
        answers = [self._submit(*pair) for pair in zip(items, verdicts, strict=True)]
        waiting = [answer for answer in answers if answer is not None]
        if waiting:
            await asyncio.wait(waiting, timeout=self._wait_s)
        return [_read(*pair) for pair in zip(verdicts, answers, strict=True)]

    def _submit(self, item: Item, verdict: Verdict) -> asyncio.Future[list[Verdict]] | None:
        asked = question(item, verdict)
        if asked is None or len(self._open) >= _MAX_OPEN:
            return None
        try:
            answer = self._pool.submit([asked])
        except VerifierError as problem:
            logger.warning("the second judge cannot be asked: %s", problem)
            return None
        self._open.add(answer)
        answer.add_done_callback(self._close)
        return asyncio.wrap_future(answer)

    def _close(self, answer: Future[list[Verdict]]) -> None:
        self._open.discard(answer)
        if not answer.cancelled() and answer.exception():
            logger.warning("the second judge failed: %s", answer.exception())


def _read(verdict: Verdict, answer: asyncio.Future[list[Verdict]] | None) -> Opinion:
    if answer is None:
        return "not_asked"
    if not answer.done() or answer.cancelled() or answer.exception():
        return "none"
    return opinion(verdict, answer.result()[0])
