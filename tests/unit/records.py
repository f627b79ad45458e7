"""Group records for tests, from the few facts that a test is about."""

from recipe.hint.schema import PromptRecord


def record(problem_id="p", *, groups, planned=None, statuses=None, accepted=-1, **more):
    """``groups``: (level, rewards) per attempt, in order; the last is accepted."""
    levels = tuple(level for level, _ in groups)
    count = len(groups)
    values = {
        "uid": f"uid-{problem_id}",
        "step": 1,
        "planned_level": levels[0] if planned is None else planned,
        "levels": levels,
        "hint_statuses": statuses or tuple("ok" if level else "none" for level in levels),
        "rewards": tuple(tuple(map(float, rewards)) for _, rewards in groups),
        "num_ungraded": (0,) * count,
        "rollout_tokens": (10,) * count,
        "seconds": (0.5,) * count,
        "accepted": accepted % count,
        "accepted_level": levels[accepted],
    }
    return PromptRecord(problem_id=problem_id, **(values | more))
