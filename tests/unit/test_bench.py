"""The benchmark's own arithmetic."""

import pytest

from recipe.run.errors import ConfigError
from recipe.study.bench import split_arguments, summary_of


def row(arm, number, *, rollout_s, step_s, tokens, **more):
    zeros = dict.fromkeys(("update_s", "other_s", "discarded_tokens", "hint_tokens"), 0.0)
    sampled = tokens + more.get("discarded_tokens", 0) + more.get("hint_tokens", 0)
    return {
        **zeros,
        "tokens": sampled,
        "arm": arm,
        "round": number,
        "is_counted": number > 0,
        "rollout_s": rollout_s,
        "step_s": step_s,
        "accepted_tokens": tokens,
        "level0": 16,
        "unresolved": 4,
        **more,
    }


ROWS = [
    row("grpo", 0, rollout_s=99, step_s=99, tokens=1),  # warm-up, not counted
    row("grpo", 1, rollout_s=1, step_s=3, tokens=100),
    row("sage", 1, rollout_s=2, step_s=4, tokens=100, discarded_tokens=100),
    row("grpo", 2, rollout_s=3, step_s=5, tokens=100),
    row("sage", 2, rollout_s=9, step_s=11, tokens=100, discarded_tokens=60, hint_tokens=40),
]


def test_ratios_are_taken_round_by_round():
    sage = summary_of(ROWS)["arms"]["sage"]
    # Rollout: 2/1 and 9/3. Step: 4/3 and 11/5. Tokens: 200/100 in both.
    assert sage["rollout_ratio"] == {"median": 2.5, "min": 2.0, "max": 3.0}
    assert sage["step_ratio"]["max"] == pytest.approx(2.2)
    assert sage["token_ratio"]["median"] == 2.0
    # 400 tokens in 11 s of rollout; 4 of 16 groups all wrong.
    assert sage["tokens_per_s"] == pytest.approx(400 / 11)
    assert sage["unresolved_share"] == 0.25


def test_bench_arguments_are_taken_out_and_the_rest_is_left_to_hydra():
    rest, settings = split_arguments(["hardware=laptop", "bench.steps=3", "bench.arms=[grpo,sage]"])
    assert rest == ["hardware=laptop"]
    assert (settings.steps, settings.arms, settings.warmup) == (3, ("grpo", "sage"), 2)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("bench.step=3", "bench.step"),
        ("bench.steps=many", "bench.steps="),
        ("bench.steps=0", "bench.steps=0"),
        ("bench.arms=[grpo,wise]", "wise"),
        ("bench.arms=[sage]", "must name grpo"),
    ],
)
def test_a_wrong_bench_argument_is_named(argument, message):
    with pytest.raises(ConfigError, match=message):
        split_arguments([argument])
