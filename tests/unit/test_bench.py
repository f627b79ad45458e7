"""The benchmark's own arithmetic."""

import sys
from dataclasses import replace

import pytest
from records import record

from recipe.hint import main_bench
from recipe.run.errors import ConfigError
from recipe.study.bench.plan import compose_batches, slots_of, token_counts
from recipe.study.bench.report import lines_of, spread, summary_of
from recipe.study.bench.settings import (
    BenchSettings,
    split_arguments,
)


def row(arm, turn, *, rollout_s, step_s, tokens, unresolved=4, **more):
    numbers = dict.fromkeys(
        "log_prob_s update_s sync_s other_s discarded_tokens hint_tokens hinted mixed "
        "requests prompt_tokens cached_tokens server_cpu_s worker_cpu_s driver_cpu_s "
        "before_s after_s".split(),
        0.0,
    )
    return {
        **numbers,
        "arm": arm,
        "round": turn,
        "is_counted": turn > 0,
        "rollout_s": rollout_s,
        "step_s": step_s,
        "accepted_tokens": tokens,
        "prompts": 16,
        "level0": 16,
        "unresolved": unresolved,
        **more,
    }


ROWS = [
    row("grpo", 0, rollout_s=99, step_s=99, tokens=1),  # warm-up, not counted
    row("grpo", 1, rollout_s=1, step_s=3, tokens=100, alone_tokens=100, alone_s=0.5),
    row("sage", 1, rollout_s=2, step_s=4, tokens=100, discarded_tokens=100),
    row("grpo", 2, rollout_s=3, step_s=5, tokens=100, alone_tokens=100, alone_s=0.5),
    row("sage", 2, rollout_s=9, step_s=11, tokens=100, discarded_tokens=60, hint_tokens=40),
]


def test_ratios_are_taken_round_by_round():
    sage = summary_of(ROWS)["arms"]["sage"]
    # Rollout: 2/1 and 9/3. Step: 4/3 and 11/5. Tokens: 200/100 in both.
    assert (sage["rollout_ratio"]["min"], sage["rollout_ratio"]["max"]) == (2.0, 3.0)
    assert sage["rollout_ratio"]["median"] == 2.5
    assert sage["step_ratio"]["max"] == pytest.approx(2.2)
    assert sage["token_ratio"]["mean"] == 2.0
    assert any("rollout 2.50 [2.00, 3.00]" in line for line in lines_of(summary_of(ROWS)))
    # 400 tokens in 11 s of rollout.
    assert sage["tokens_per_s"] == pytest.approx(400 / 11)


def test_vllm_alone_is_compared_in_tokens_per_second():
    summary = summary_of(ROWS)
    # Alone 200 tokens in 1 s; grpo 200 tokens in 4 s of rollout: a quarter.
    assert summary["alone"]["tokens_per_s"] == 200
    assert any("grpo reaches 0.25 of it" in line for line in lines_of(summary))


def test_the_error_of_a_ratio_is_that_of_its_mean():
    # The deviation of 2 and 3 is 1 / 2^0.5, and that of their mean 1 / 2.
    assert spread([2.0, 3.0])["error"] == pytest.approx(0.5)
    assert spread([2.0]) == {"median": 2.0, "mean": 2.0, "min": 2.0, "max": 2.0, "error": 0.0}


def test_bench_arguments_are_taken_out_and_the_rest_is_left_to_hydra():
    rest, settings = split_arguments(["hardware=laptop", "bench.steps=3", "bench.arms=[grpo,sage]"])
    assert rest == ["hardware=laptop"]
    assert (settings.steps, settings.arms, settings.warmup) == (3, ["grpo", "sage"], 2)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("bench.step=3", "choose from bench.arms"),
        ("bench.steps=many", "bench.steps=many"),
        ("bench.steps=0", "bench.steps=0 must be at least 1"),
        ("bench.arms=[grpo,wise]", "bench.arms=wise is not an arm"),
        ("bench.arms=[sage]", "grpo among them"),
        ("bench.unresolved=1.5", "must be a share"),
    ],
)
def test_a_wrong_bench_argument_is_named(argument, message):
    with pytest.raises(ConfigError, match=message):
        split_arguments([argument])


def test_a_wrong_argument_ends_the_command_with_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["main_bench.py", "bench.arms=[grpo,wise]"])
    with pytest.raises(SystemExit, match="2"):
        main_bench.main()
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: bench.arms=wise is not an arm")
    assert err.count("\n") == 1


def test_a_batch_has_the_share_of_unsolved_problems_that_was_asked_for():
    solved = {row: row % 2 == 0 for row in range(24)}
    first, second = compose_batches(solved, 8, 2, 0.25)
    # A quarter of 8 are 2 unsolved (odd) rows; no row comes twice.
    assert [sum(row % 2 for row in batch) for batch in (first, second)] == [2, 2]
    assert len({*first, *second}) == 16


def test_without_a_share_the_batches_are_the_data_s_own():
    assert compose_batches(dict.fromkeys(range(4), True), 2, 2, -1) == [[0, 1], [2, 3]]


def test_too_few_unsolved_problems_are_an_error():
    with pytest.raises(ConfigError, match="solved 8 of 8; raise bench.calibration"):
        compose_batches(dict.fromkeys(range(8), True), 8, 1, 0.25)


def test_every_round_has_one_step_of_each_arm_after_the_calibration():
    bench = BenchSettings(arms=["grpo", "sage"], steps=1, warmup=1, calibration=2)
    assert [(slot.arm, slot.round) for slot in slots_of(bench)] == [
        *(("calibration", 1), ("calibration", 2)),
        *(("grpo", 3), ("sage", 3)),
        *(("grpo", 4), ("sage", 4)),
    ]


def test_tokens_are_accepted_discarded_or_hints():
    def tokens(of, count):
        return replace(of, rounds=tuple(replace(each, tokens=count) for each in of.rounds))

    searched = tokens(record("a", groups=[(0, [0, 0]), (1, [1, 0])], hint_tokens=20), 100)
    started_high = tokens(record("b", groups=[(2, [1, 0])]), 30)
    searched = replace(searched, trained_tokens=100)
    started_high = replace(started_high, trained_tokens=30)
    counts = token_counts([searched, started_high])
    # Problem a: two groups of 100 tokens, one of which trains.
    assert (counts["accepted_tokens"], counts["discarded_tokens"]) == (130, 100)
    assert counts["hint_tokens"] == 20
    # Only a was tried without a hint, and nobody was right there.
    assert (counts["level0"], counts["unresolved"]) == (1, 1)
