"""The second judge of a training run costs a prompt a bounded time and no verdict."""

import asyncio
from concurrent.futures import Future

from recipe.hint.adapter.second_judge import SecondJudge, build_second_judge
from recipe.hint.samples import SampleSettings
from recipe.run.errors import VerifierError
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item, Verdict
from recipe.verify.second_judge import SECOND

RIGHT = Verdict(1.0, "correct", "5")


class Scripted:
    """A pool that answers by the gold answer of an item; some answers never come."""

    def __init__(self):
        self.asked = []
        self.open = []

    def submit(self, items):
        self.asked += items
        future: Future = Future()
        future.set_running_or_notify_cancel()
        match items[0].answer:
            case "hangs":
                self.open.append(future)
            case "fails":
                future.set_exception(VerifierError("died"))
            case "closed":
                raise VerifierError("the pool is closed")
            case answer:
                future.set_result(
                    [Verdict(float(answer == "5"), "correct" if answer == "5" else "wrong")]
                )
        return future


def ask(pool, answers, verdict=RIGHT):
    grade = SecondJudge(pool.submit, wait_s=0.05)
    items = [Item(r"\boxed{5}", answer) for answer in answers]
    return asyncio.run(grade.ask(items, [verdict] * len(items))), grade


def test_opinions_come_in_order_and_failures_are_none():
    opinions, _ = ask(Scripted(), ["5", "4", "hangs", "fails", "closed", "5"])
    assert opinions == ["agrees", "disagrees", "none", "none", "not_asked", "agrees"]


def test_undecided_verdicts_are_not_asked_about():
    pool = Scripted()
    assert ask(pool, ["5", "4"], Verdict(0.0, "timeout"))[0] == ["not_asked"] * 2
    assert pool.asked == []


def test_questions_that_hang_do_not_pile_up():
    pool = Scripted()
    opinions, grade = ask(pool, ["hangs"] * 300)
    assert len(pool.asked) == 256
    assert opinions == ["none"] * 256 + ["not_asked"] * 44
    for future in pool.open:
        future.set_result([Verdict(0.0, "timeout")])
    items = [Item(r"\boxed{5}", "5")]
    assert asyncio.run(grade.ask(items, [RIGHT])) == ["agrees"]  # there is room again


def test_a_share_of_zero_starts_no_second_judge():
    assert build_second_judge(SampleSettings(second_judge_share=0.0)) is None


def test_the_real_second_judge_disagrees_with_a_verdict_that_is_wrong():
    items = [Item(r"\boxed{5}", "5"), Item(r"\boxed{5}", "4")]
    with VerifierPool(1, grade_path=SECOND) as pool:
        opinions = asyncio.run(SecondJudge(pool.submit, wait_s=60).ask(items, [RIGHT, RIGHT]))
    assert opinions == ["agrees", "disagrees"]
