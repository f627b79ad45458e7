"""Every method through the same scenarios, and through a resume in the middle."""

import json
from collections import Counter
from pathlib import Path

import pytest
from fakes import Numbered, ScriptedEngine, problem, run
from records import responses

from recipe.hint.methods import every_method
from recipe.hint.methods.fixed import Fixed
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.methods.sage_light import SageLight
from recipe.hint.methods.scaf import Scaf, ScafSettings
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.schema import ProblemState

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/traces.json").read_text())
CASES = [
    (method, scenario, expected)
    for method, traces in GOLDEN["traces"].items()
    for scenario, expected in traces.items()
]
BUILT = {
    "grpo": Grpo(),
    "sage": Sage(max_level=3),
    "sage-light": SageLight(max_level=3),
    "fixed": Fixed(max_level=3),
    "ghpo": Ghpo(max_level=3),
    "scaf": Scaf(max_level=3, settings=ScafSettings(increments=1)),
}
STEP = 100  # after every cold start
# sage-light was wrong at level 1: its plan is level 2, as is that of fixed.
PAST = ProblemState(visits=1, level=1, accuracy=0.0)
BARE = len("answer in a box" + "What is 1+1?")


@pytest.mark.parametrize(
    ("method", "scenario", "expected"), CASES, ids=[f"{case[0]}: {case[1]}" for case in CASES]
)
def test_a_method_tries_and_trains_on_what_is_written_beside_the_scenario(
    method, scenario, expected
):
    script = GOLDEN["scenarios"][scenario]
    outcomes = dict.fromkeys(range(4), [0, 0])
    outcomes |= {int(level): rewards for level, rewards in script["outcomes"].items()}
    room = {"prompt_length": BARE + script["room"]} if "room" in script else {}
    outcome = run(
        BUILT[method],
        outcomes,
        state=PAST,
        step=STEP,
        source=Numbered(3, script.get("status", "ok")),
        **room,
    )
    assert list(outcome.record.levels) == expected["levels"]
    trained = Counter(response.token_ids_T[0] for response in responses(outcome))
    assert {str(level): count for level, count in trained.items()} == expected["train"]


def test_every_method_of_one_turn_has_its_traces():
    of_one_turn = {name for name, cls in every_method().items() if not cls(max_level=3).credit}
    assert set(GOLDEN["traces"]) == of_one_turn == set(BUILT)


RESUMED = {
    **{name: BUILT[name] for name in ("grpo", "sage", "sage-light", "fixed")},
    "sage that remembers": Sage(
        max_level=3, settings=SearchSettings(probe_n=1, start="remembered")
    ),
    "ghpo that starts cold": Ghpo(max_level=3, settings=GhpoSettings(cold_start_steps=4)),
    "scaf that warms up": Scaf(max_level=3, settings=ScafSettings(increments=1, warmup_steps=4)),
}


def visits(method, steps, tracker):
    """What three problems come to in these steps; what they answer changes from step to step."""
    seen = []
    for step in steps:
        records = []
        for index in range(3):
            outcomes = {level: [int(level >= (step + index) % 5), 0] for level in range(4)}
            item = problem(problem_id=f"p{index}")
            engine = ScriptedEngine(outcomes)
            state = tracker.state(item.id)
            source = Numbered(3)
            outcome = run(
                method, {}, engine=engine, item=item, state=state, step=step, source=source
            )
            records.append(outcome.record)
            seen.append((outcome.record.levels, outcome.record.rows, engine.seeds))
        tracker.update(records)
    return seen


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize("stop", [2, 5])
def test_a_run_resumed_in_the_middle_goes_on_as_if_it_had_never_stopped(name, stop):
    method = RESUMED[name]
    whole = visits(method, range(1, 9), RewardTracker())
    first, second = RewardTracker(), RewardTracker()
    head = visits(method, range(1, stop + 1), first)
    second.load_state_dict(first.state_dict())
    tail = visits(method, range(stop + 1, 9), second)
    assert head + tail == whole
    has_choice = name not in {"grpo", "fixed"}
    assert (len({levels for levels, _, _ in whole}) > 1) == has_choice
