"""Prompt records for tests, from the few facts that a test is about, and short looks at them."""

from recipe.hint.record import PromptRecord, RoundRecord
from recipe.hint.turns import Place


def record(problem_id="p", *, groups, statuses=None, accepted=-1, ungraded=None, **more):
    """``groups``: (level, accuracies) per round; ``rows`` train, or all of round ``accepted``."""
    count = len(groups)
    statuses = statuses or ["ok" if level else "none" for level, _ in groups]
    ungraded = ungraded or [0] * count
    rounds = tuple(
        RoundRecord(
            prompt="hinted" if level else "bare",
            level=level,
            hint_status=status,
            accuracies=tuple(map(float, accuracies)),
            num_ungraded=failed,
            tokens=10,
        )
        for (level, accuracies), status, failed in zip(groups, statuses, ungraded, strict=True)
    )
    accepted %= count
    whole = [(accepted, turn) for turn in range(len(rounds[accepted].accuracies))]
    rows = tuple(Place(*place) for place in more.pop("rows", whole))
    own = tuple(rounds[place.round].accuracies[place.turn] for place in rows)
    values = {
        "uid": f"uid-{problem_id}",
        "step": 1,
        "rounds": rounds,
        "rows": rows,
        "rewards": own,
        "accuracies": own,
        "trained_tokens": rounds[accepted].tokens,
    }
    return PromptRecord(problem_id=problem_id, **(values | more))


def statuses(of):
    """The hint status of each round."""
    return tuple(each.hint_status for each in of.rounds)


def ungraded(of):
    """The number of ungraded responses of each round."""
    return tuple(each.num_ungraded for each in of.rounds)


def responses(outcome):
    """What trains."""
    return [row.turn.response for row in outcome.rows]
