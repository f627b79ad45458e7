"""Two policies in turns: what comes next, wherever the command was killed."""

import pytest

from recipe.run.errors import ConfigError
from recipe.study.alternation import (
    Evaluate,
    Export,
    Facts,
    Phase,
    TrainPhase,
    Weights,
    next_action,
    phase_facts,
    phases,
)

NEW = Facts({"solver": 0, "guide": 0})


def test_the_roles_take_turns_each_counting_its_own_steps():
    # 2 + 3 + 2 + 1 = 8 steps: the last phase ends with the run.
    assert phases(2, 3, 8) == [
        Phase("solver", 1, 2),
        Phase("guide", 1, 3),
        Phase("solver", 3, 4),
        Phase("guide", 4, 4),
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 3, 8), "t_low=0 and t_high=3 must both be at least 1"),
        ((2, 0, 8), "t_low=2 and t_high=0 must both be at least 1"),
        ((4, 3, 4), "total_training_steps=4 .* must be above t_low=4: otherwise the guide never"),
    ],
)
def test_a_schedule_in_which_a_role_never_trains_is_refused(given, says):
    with pytest.raises(ConfigError, match=says):
        phases(*given)


def test_a_longer_run_goes_on_with_a_phase_that_had_been_cut():
    short, long = phases(2, 2, 5), phases(2, 2, 8)
    at_the_end = Facts({"solver": 3, "guide": 2}, frozenset({Weights("solver", 3), GUIDE_2}))
    assert next_action(short, at_the_end) is None
    assert next_action(long, at_the_end) == TrainPhase(Phase("solver", 3, 4), GUIDE_2)


GUIDE_2 = Weights("guide", 2)


def after(facts, **steps):
    return Facts({**facts.steps, **steps}, facts.exports)


def effects(action, facts):
    """What an action changes, in order: the command may be killed before and after each."""
    if isinstance(action, Export):
        yield Facts(facts.steps, facts.exports | {action.weights})
    else:
        role, _, last = action.phase
        for step in range(facts.steps[role] + 1, last + 1):
            yield after(facts, **{role: step})


def without_stale(facts):
    """The stale exports go one by one; a kill may leave any of them."""
    yield facts
    for each in sorted(facts.stale()):
        facts = Facts(facts.steps, facts.exports - {each})
        yield facts


def walk(planned):
    """All folders that any kills can leave; (role, step) -> the weights it was trained against."""
    seen, waiting, against = set(), [NEW], {}
    while waiting:
        facts = waiting.pop()
        key = (*facts.steps.values(), facts.exports)
        if key in seen:
            continue
        seen.add(key)
        action = next_action(planned, facts)
        if action is None:
            yield facts, against
            continue
        assert isinstance(action, Export | TrainPhase)
        before = facts
        for changed in effects(action, facts):
            waiting.extend(without_stale(changed))
            if isinstance(action, TrainPhase):
                assert not action.served.step or action.served in before.exports
                step = (action.phase.role, changed.steps[action.phase.role])
                against.setdefault(step, set()).add(action.served)


@pytest.mark.parametrize("schedule", [(1, 1, 5), (2, 2, 8), (2, 3, 12), (3, 1, 9), (1, 4, 7)])
def test_whatever_is_killed_and_when_each_step_trains_against_the_same_weights(schedule):
    planned = phases(*schedule)
    ends = list(walk(planned))
    assert ends
    last = {role: max(each.last for each in planned if each.role == role) for role in NEW.steps}
    for facts, _ in ends:
        assert facts.steps == last
        assert {Weights(*each) for each in last.items()} <= facts.exports
    # Of phase k its partner's end of phase k - 1; of the first one the base.
    expected, done = {}, {"solver": 0, "guide": 0}
    for phase in planned:
        for step in range(phase.first, phase.last + 1):
            expected[phase.role, step] = {Weights(phase.partner, done[phase.partner])}
        done[phase.role] = phase.last
    assert ends[-1][1] == expected


def test_exports_of_earlier_weights_are_stale():
    facts = Facts({"solver": 4, "guide": 2}, frozenset({Weights("solver", 2), GUIDE_2}))
    assert facts.stale() == {Weights("solver", 2)}


def test_a_pair_is_evaluated_as_it_stands_after_its_exports():
    # In the middle of a phase: the solver's step 3 is exported too.
    facts = Facts({"solver": 3, "guide": 2}, frozenset({GUIDE_2}))
    solver = Weights("solver", 3)
    assert next_action([], facts, evaluates=True) == Export(solver)
    whole = Facts(facts.steps, frozenset({GUIDE_2, solver}))
    assert next_action([], whole, evaluates=True) == Evaluate(solver, GUIDE_2)
    base = Weights("solver", 0), Weights("guide", 0)
    assert next_action([], NEW, evaluates=True) == Evaluate(*base)


def trained(step, **more):
    return {"step": step, "timing_s/step": 1.5, "hint/prompts": 8} | more


def test_a_phase_is_told_by_the_lines_of_its_own_steps():
    rows = [
        {"step": 0, "val-core/toy/acc/mean@4": 0.1},
        *(trained(step, **{"turns/delta": step / 10}) for step in (1, 2, 3)),
    ]
    assert phase_facts(Phase("guide", 2, 5), rows) == {
        **{"role": "guide", "first": 2, "last": 5},
        **{"step": 3, "seconds": 3.0, "metrics": {"turns/delta": 0.3}},
    }
    begun = phase_facts(Phase("guide", 4, 5), rows)
    assert (begun["step"], begun["seconds"], begun["metrics"]) == (3, 0, {})


def test_a_phase_keeps_its_result_when_the_next_one_validates_against_another_partner():
    name = "val-core/toy/acc/mean@4"
    # Steps 1 and 2 train and validate against guide-0; then step 2 is validated against guide-5.
    rows = [
        trained(1, **{name: 0.7}),
        {"step": 2, "hint/prompts": 8, name: 0.8},  # killed before its time was known
        {"step": 2, name: 0.35},
        trained(3, **{name: 0.4}),
    ]
    assert phase_facts(Phase("solver", 1, 2), rows)["metrics"] == {name: 0.8}
    assert phase_facts(Phase("solver", 3, 4), rows[:3])["step"] == 2
