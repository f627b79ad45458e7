"""The benchmark's own arithmetic and its copy of the release's scheme, on a scripted engine."""

import asyncio
import sys
from dataclasses import replace

import pytest
from fakes import ScriptedEngine, make_rollout, problem, run
from records import record

from recipe.hint import main_bench
from recipe.hint.hints.base import HintResult
from recipe.hint.schema import HintLevels
from recipe.run.errors import ConfigError
from recipe.study.bench.plan import compose_batches, slots_of, token_counts
from recipe.study.bench.release import Batch, ReleaseRollout
from recipe.study.bench.report import lines_of, predicted, spread, summary_of
from recipe.study.bench.settings import (
    BenchSettings,
    TurnCostSettings,
    read_arguments,
    split_arguments,
)

LADDER = HintResult("ok", HintLevels(("hint 1", "hint 2", "hint 3")), calls=1, tokens=7)


def release_batch(outcomes_of, hint_levels=LADDER):
    """All problems together; ``outcomes_of[problem][level]`` are the rewards of a group."""
    batch = Batch(len(outcomes_of))
    engines = {name: ScriptedEngine(outcomes) for name, outcomes in outcomes_of.items()}
    written = []

    def one(name):
        item = problem(problem_id=name)

        async def write(step):
            written.append(name)
            return hint_levels

        return ReleaseRollout(
            lambda method, source: make_rollout(
                method, engines[name], item=item, source=source
            ).run(f"uid-{name}", 1),
            write,
            batch=batch,
            max_level=3,
        )

    async def everybody():
        visits = (one(name).run(1) for name in outcomes_of)
        return await asyncio.wait_for(asyncio.gather(*visits), 5)

    outcomes = dict(zip(outcomes_of, asyncio.run(everybody()), strict=True))
    return outcomes, engines, written


def test_the_release_samples_every_prompt_again_at_every_level_while_one_is_unresolved():
    outcomes, engines, written = release_batch(
        {
            "easy": {0: [1, 0], 1: [0, 0], 2: [0, 0], 3: [0, 0]},
            "hard": {0: [0, 0], 1: [0, 0], 2: [0, 1], 3: [0, 0]},
        }
    )
    # Three passes over both: level 0, 1 and 2. Then nobody is unresolved.
    assert {name: engine.num_sampled for name, engine in engines.items()} == {"easy": 6, "hard": 6}
    assert written == ["hard"]
    easy, hard = outcomes["easy"].record, outcomes["hard"].record
    assert (easy.levels, easy.first_row_level) == ((0, 0, 0), 0)
    assert (hard.levels, hard.first_row_level) == ((0, 1, 2), 2)
    # Tokens: 3 groups of 2 answers with 3 tokens each, of which one group trains.
    for done in (easy, hard):
        assert (sum(each.tokens for each in done.rounds), done.trained_tokens) == (18, 6)
        assert done.accuracies == done.rounds[done.rows[0].round].accuracies


def test_a_release_batch_that_level_zero_solves_is_sampled_once():
    outcomes, engines, written = release_batch({"a": {0: [1, 0]}, "b": {0: [0, 1]}})
    assert [engine.num_sampled for engine in engines.values()] == [2, 2]
    assert written == []
    assert outcomes["a"].record.levels == (0,)


def test_a_release_prompt_without_a_ladder_keeps_its_level_zero_group():
    failed = HintResult("parse_failed", calls=3, tokens=9)
    outcomes, engines, _ = release_batch({"hard": {0: [0, 0]}}, failed)
    # Level 0, and the three levels that the batch goes through for it in vain.
    assert engines["hard"].num_sampled == 8
    record = outcomes["hard"].record
    assert (record.first_row_level, record.hint_tokens) == (0, 9)


def test_one_failing_prompt_ends_the_wait_of_all():
    async def both():
        batch = Batch(2)
        waiting = asyncio.ensure_future(batch.arrive(1, True))
        await asyncio.sleep(0)
        await batch.abort()
        await waiting

    with pytest.raises(asyncio.BrokenBarrierError, match="Abort"):
        asyncio.run(both())


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
    # The fastest rollouts: 2 of (2, 9) and 1 of (1, 3).
    assert any("fastest 2.00 / 1.33" in line for line in lines_of(summary_of(ROWS)))
    # 400 tokens in 11 s of rollout.
    assert sage["tokens_per_s"] == pytest.approx(400 / 11)


def test_vllm_alone_is_compared_in_tokens_per_second():
    summary = summary_of(ROWS)
    # Alone 200 tokens in 1 s; grpo 200 tokens in 4 s of rollout: a quarter.
    assert summary["alone"]["tokens_per_s"] == 200
    assert any("grpo reaches 0.25 of it" in line for line in lines_of(summary))


def test_the_cost_model_scales_the_extra_with_the_share_of_unresolved_prompts():
    arms = summary_of(ROWS)["arms"]
    # Measured at 4/16 = 25 %: rollout 5.5/2 = 2.75, step 7.5/4 = 1.875. At 10 %, 0.4 of the extra.
    ratios = predicted(arms["sage"], arms["grpo"], 0.1)
    assert ratios["rollout"] == pytest.approx(1 + 1.75 * 0.4)
    assert ratios["step"] == pytest.approx(1 + 0.875 * 0.4)


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


def test_a_turn_is_counted_in_levels_that_train():
    pytest.importorskip("verl")
    from recipe.study.bench.turn_cost import ALL_LEVELS, FIRST_LEVEL
    from recipe.study.bench.turn_cost import lines_of as turn_lines

    # The first level is 6 - 2 = 4 ms, their mean (8 - 2) / 3 = 2 ms; a turn of the last method
    # (10 - 2) / 2 = 4 ms, then (6 - 2) / 2 = 2.
    one = {"grpo": 2, FIRST_LEVEL: 6, ALL_LEVELS: 8, "talk": 10}
    lines = turn_lines([one, one | {"talk": 6}], dict(zip(one, (1, 2, 4, 3), strict=True)))
    assert lines[1:] == [
        "grpo | 1 | 2.00",
        "sage, first level | 2 | 6.00 | 1.00 | 2.00",
        "sage, all levels | 4 | 8.00 | 0.50 | 1.00",
        "talk | 3 | 8.00 | 0.75 | 1.50",  # of 1.00 and 0.50, of 2.00 and 1.00
    ]


@pytest.mark.parametrize("last_level", [1, 3])
def test_a_level_is_measured_with_the_rows_of_each_level_up_to_it(last_level):
    pytest.importorskip("verl")
    from recipe.study.bench.turn_cost import SageOnEveryRow

    method = SageOnEveryRow(max_level=3)
    method.last_level = last_level
    outcome = run(method, {level: [0, 0] for level in range(4)})
    assert [each.level for each in outcome.record.rounds] == [*range(last_level + 1)]
    assert len(outcome.rows) == 2 * (last_level + 1)


def test_arguments_of_the_turns_that_measure_nothing_are_refused():
    assert read_arguments(["turns.prompts=2"], "turns.", TurnCostSettings)[1].prompts == 2
    with pytest.raises(ConfigError, match=r"turns.repetitions=0 must be at least 1"):
        read_arguments(["turns.repetitions=0"], "turns.", TurnCostSettings)
