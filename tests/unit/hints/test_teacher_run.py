"""100 problems of a run whose teacher fails for 30 of them: training goes on, the counts add up."""

import asyncio
from collections import Counter
from pathlib import Path

from asking import FAST, teacher
from chat_server import ChatServer, completion
from fakes import ScriptedEngine, problem

from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.hints.teacher import Teacher
from recipe.hint.methods.sage import Sage
from recipe.hint.metrics import step_metrics
from recipe.hint.prompt import Texts
from recipe.hint.record import PromptRecord
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import HintSettings

# Six faults, five problems each: four pass at the second request, the fifth has the fault for good.
FAULTS = {
    "429": "rate_limited",
    "500": "server_error",
    "slow": "timeout",
    "closed": "connection",
    "cut": "cut_off",
    "raw:sorry": "garbage",
}
FAULTY = {f"way {10 * i + 3 * j}": name for i in range(5) for j, name in enumerate(FAULTS)}
FOR_GOOD = {f"way {40 + 3 * j}": name for j, name in enumerate(FAULTS)}


def script(body, number):
    solution = body["messages"][1]["content"].rsplit("\n", 1)[-1]
    has_fault = number == 1 or solution in FOR_GOOD
    return FAULTY[solution] if solution in FAULTY and has_fault else completion()


def is_slow(body, number):
    return script(body, number) == "slow"


class Watched:
    """A source, and what it gave."""

    def __init__(self, source: Teacher) -> None:
        self.source = source
        self.results: list[HintResult] = []

    async def write(self, problem, generate: Generate, *, num_before: int = 0) -> HintResult:
        self.results.append(await self.source.write(problem, generate, num_before=num_before))
        return self.results[-1]


def visits(folder: Path, server_script, step: int):
    """The records of one step with 100 problems that are hard without a hint."""

    async def run():
        server = ChatServer(server_script)
        server.is_slow = is_slow if server_script is script else server.is_slow
        async with server.running():
            source = Watched(teacher(server, folder))
            jobs = (one_visit(source, i).run(f"uid-{i}", step) for i in range(100))
            outcomes = await asyncio.gather(*jobs)
            return [each.record for each in outcomes], source, server

    return asyncio.run(run())


def one_visit(source, index: int) -> PromptRollout:
    return PromptRollout(
        problem(solution=f"way {index}", problem_id=f"p{index}"),
        ProblemState(),
        RolloutParts(
            method=Sage(max_level=3),
            source=source,
            engine=ScriptedEngine({0: [0, 0], 1: [0, 1], 2: [0, 1], 3: [0, 1]}),
            settings=HintSettings(),
            texts=Texts(),
        ),
    )


def metrics(records: list[PromptRecord]) -> dict[str, float]:
    return step_metrics(records, max_level=3)


def test_the_faults_are_those_of_30_problems():
    assert len(FAULTY) == 30
    assert FOR_GOOD.items() <= FAULTY.items()
    assert FAST.num_retries == 2


def test_every_fault_ends_in_a_record_and_a_second_run_asks_only_for_what_is_missing(tmp_path):
    records, source, server = visits(tmp_path, script, step=1)
    # 70 at once, 24 at the second request, 6 never.
    assert Counter(each.first_row_level for each in records) == {1: 94, 0: 6}
    assert all(len(each.accuracies) == 2 for each in records)
    failed = [each for each in source.results if each.status != "ok"]
    assert Counter(each.status for each in failed) == {"generation_failed": 6}
    assert Counter(each.detail.split(": ")[0] for each in failed) == Counter(FAULTS.values())
    told = Counter(each.hint_fault for each in records)
    assert told == Counter(FAULTS.values()) | {"": 94}
    assert {
        name.removeprefix("fault_"): count
        for name, count in metrics(records).items()
        if name.startswith("fault_")
    } == Counter(FAULTS.values())
    # 70 + 24 * 2 + 6 * (1 + 2 retries)
    assert len(server.requests) == 136
    assert sum(each.calls for each in source.results) == 136
    seen = metrics(records)
    assert (seen["generate_requested"], seen["generate_attempts"]) == (100, 136)
    assert (seen["generate_success"], seen["generate_failed"]) == (94, 6)

    records, source, server = visits(tmp_path, None, step=2)
    assert len(server.requests) == 6
    assert Counter(each.calls for each in source.results) == {0: 94, 1: 6}
    assert Counter(each.first_row_level for each in records) == {1: 100}

    records, source, server = visits(tmp_path, lambda body, number: "500", step=3)
    assert server.requests == []
    assert metrics(records)["generate_success"] == 100
