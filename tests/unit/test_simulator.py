"""The simulator's clock, replicas and steps, each against arithmetic done by hand."""

import asyncio

import pytest

from recipe.run.errors import ConfigError, StallError
from recipe.study.bench import parts
from recipe.study.bench.cases import Case, cases_of
from recipe.study.bench.clock import run_virtual
from recipe.study.bench.control_settings import control_lines, driver_s
from recipe.study.bench.fleet import Fleet, Speed
from recipe.study.bench.scale import scale_lines, simulate
from recipe.study.bench.world import SimulatedEngine, World

# A decoding step takes 10 ms and 1 ms per sequence; two sequences at once.
SLOW = Speed(10, 1, 2, prefill_tokens_per_s=1000, train_tokens_per_s=1)


def simulated(coroutine_of):
    """Simulated seconds that a coroutine takes."""

    async def timed():
        await coroutine_of()
        return asyncio.get_running_loop().time()

    return run_virtual(timed())


def decoded(*lengths, prompt_tokens=0, speed=SLOW):
    return simulated(lambda: Fleet(speed, 1).generate(lengths, prompt_tokens))


# -- the clock ------------------------------------------------------------------------------------


def test_an_hour_passes_at_once_and_timers_come_in_their_order():
    async def main():
        order = []

        async def after(delay_s):
            await asyncio.sleep(delay_s)
            order.append((delay_s, asyncio.get_running_loop().time()))

        await asyncio.gather(after(3600), after(1), after(0))
        return order

    assert run_virtual(main()) == [(0, 0), (1, 1), (3600, 3600)]


def test_what_can_never_happen_is_an_error_that_says_when():
    async def main():
        await asyncio.sleep(5)
        await asyncio.Event().wait()

    with pytest.raises(StallError, match="stands still at 5.0 s"):
        run_virtual(main())


# -- replicas -------------------------------------------------------------------------------------


def test_a_sequence_alone_takes_its_tokens_times_a_step():
    assert decoded(100) == pytest.approx(100 * 0.011)


def test_two_sequences_share_the_slower_step_until_the_shorter_one_ends():
    # 50 steps with both: 12 ms each; 50 with one: 11 ms.
    assert decoded(100, 50) == pytest.approx(50 * 0.012 + 50 * 0.011)


def test_a_sequence_beyond_the_capacity_waits_for_a_place():
    assert decoded(100, 100, 100) == pytest.approx(100 * 0.012 + 100 * 0.011)


def test_a_prompt_is_read_once_for_its_group_and_decoding_waits_meanwhile():
    assert decoded(100, 100, prompt_tokens=500) == pytest.approx(0.5 + 100 * 0.012)


def test_a_request_goes_to_the_replica_with_the_fewest():
    async def both():
        fleet = Fleet(SLOW, 2)
        await asyncio.gather(fleet.generate([100], 0), fleet.generate([100], 0))

    assert simulated(both) == pytest.approx(100 * 0.011)  # not 12 ms a step


def test_a_stopped_group_goes_on_where_it_was():
    async def main():
        fleet = Fleet(SLOW, 1)
        group = asyncio.ensure_future(fleet.generate([100], 0))
        await asyncio.sleep(50 * 0.011)
        fleet.stop()
        await asyncio.sleep(7)
        assert not group.done()
        fleet.resume()
        await group
        return asyncio.get_running_loop().time(), fleet.num_tokens

    end_s, num_tokens = run_virtual(main())
    assert num_tokens == 100
    # It reads the 50 tokens again, at 1,000 a second.
    assert end_s == pytest.approx(50 * 0.011 + 7 + 50 / 1000 + 50 * 0.011)


# -- the policy -----------------------------------------------------------------------------------


def test_the_share_of_groups_without_a_right_response_is_the_one_asked_for():
    world = World(unresolved=0.25)
    groups = [world.draw(world.difficulty(number), 0, number)[1] for number in range(4000)]
    # The standard error of a share of 4,000 is 0.7 %.
    assert sum(not any(group) for group in groups) / 4000 == pytest.approx(0.25, abs=0.03)


def test_hints_help_and_lengths_keep_to_their_mean_and_their_cap():
    world = World(mean_tokens=500, max_tokens=2000, sigma=0.5)
    found = {
        level: [world.draw(world.difficulty(n), level, n) for n in range(2000)] for level in (0, 3)
    }
    solved = {level: sum(any(right) for _, right in each) for level, each in found.items()}
    assert solved[3] > solved[0] + 100
    lengths = [length for group, _ in found[0] for length in group]
    assert max(lengths) <= 2000
    assert sum(lengths) / len(lengths) == pytest.approx(500, rel=0.05)


def test_a_row_of_a_group_is_the_same_response_when_sampled_alone():
    async def main():
        engine = SimulatedEngine(World(), 3, Fleet(SLOW, 1))
        [whole] = await engine.sample_each([[1]], [17], range(engine.group_size))
        [some] = await engine.sample_each([[1]], [17], range(2, 4))
        return whole, some

    whole, some = run_virtual(main())
    assert some == whole[2:4]


# -- steps ----------------------------------------------------------------------------------------

# Every response has 100 tokens; a hint cannot fail.
EVEN = World(sigma=0.0, mean_tokens=100, parse_failure=0.0, unresolved=0.4)


def test_a_synchronous_step_is_rollout_update_and_sync_one_after_the_other():
    case = Case(replicas=1, batch=2, warmup=1, steps=2, world=EVEN)
    rollout_s = 2 * 200 / 30_000 + 100 * (6.4 + 0.085 * 16) / 1000
    update_s = 16 * (100 + 200) / 6_000
    found = simulate(case)
    assert found["step_s"] == pytest.approx(rollout_s + update_s + 10)
    assert found["wait_s"] == pytest.approx(rollout_s)
    assert found["tokens"] == found["trained_tokens"] == 1600


def test_the_release_samples_every_group_four_times_and_sage_only_the_failed_ones():
    cases = {arm: Case(arm, batch=16, warmup=0, world=EVEN) for arm in ("release-scheme", "sage")}
    release, sage = (simulate(case) for case in cases.values())
    pass_tokens = 16 * 8 * 100
    hints = 16 * 1024
    assert 4 * pass_tokens < release["tokens"] < 4 * pass_tokens + hints
    assert pass_tokens < sage["tokens"] < release["tokens"]
    assert sage["num_with_signal"] == pytest.approx(release["num_with_signal"], abs=2)


@pytest.mark.parametrize("mode", ["colocate_async", "separate_async"])
def test_every_group_is_trained_once_thrown_away_as_stale_or_still_there(mode):
    case = Case("sage", mode, batch=16, warmup=0, steps=12)
    found = simulate(case)
    assert found["trained_groups"] == 16
    # Means per step; one batch was submitted before the first step.
    gone = case.steps * (found["trained_groups"] + found["evicted"])
    assert gone + found["left"] == case.steps * found["submitted"] + 16


def test_the_same_case_gives_the_same_numbers():
    case = Case("sage", "colocate_async", batch=16, warmup=1, steps=2)
    assert simulate(case) == simulate(case)


def test_lists_stand_for_all_combinations_and_barriers_only_for_sync():
    cases = list(cases_of(["arm=[sage,release-scheme]", "mode=[sync,colocate_async]", "sigma=0.5"]))
    assert [(case.arm, case.mode) for case in cases] == [
        ("sage", "sync"),
        ("sage", "colocate_async"),
        ("release-scheme", "sync"),
    ]
    assert {case.world.sigma for case in cases} == {0.5}


@pytest.mark.parametrize(
    "argument, message",
    [
        ("arm=wise", "arm=wise is unknown; choose from grpo, "),
        ("colour=red", "colour is unknown; choose from arm, mode"),
        ("replicas=two", "replicas='two' must be a whole number"),
        ("replicas=0", "replicas=0 must be at least 1"),
        ("unresolved=1", r"unresolved=1(.0)? must be inside \(0, 1\)"),
        ("replicas=[1,2", "replicas="),
    ],
)
def test_an_argument_that_cannot_be_right_is_named(argument, message):
    with pytest.raises(ConfigError, match=message):
        list(cases_of([argument]))


def test_the_table_has_a_row_per_case_and_ratios_to_grpo():
    lines = list(scale_lines(["arm=[grpo,sage]", "batch=8", "steps=1", "warmup=0"]))
    assert [line.split(" | ")[0] for line in lines] == ["arm", "grpo", "sage"]
    assert lines[1].endswith("| 1.00")
    assert float(lines[2].split(" | ")[-1]) > 1


# -- the control plane's arithmetic ---------------------------------------------------------------


def test_time_in_a_part_inside_another_counts_once(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 7.0, 12.0, 20.0])
    monkeypatch.setattr(parts.time, "perf_counter", lambda: next(now))
    clocks = parts.Stopwatch()  # 0
    with clocks.part("outer"):  # 1
        with clocks.part("inner"):  # 3
            pass  # 7
    # 12; the end of the outer part
    assert clocks.take() == {"outer": (3 - 1) + (12 - 7), "inner": 7 - 3}  # 20


def test_a_timed_method_counts_its_own_time_and_that_of_its_parent_apart():
    class Base:
        def work(self, value):
            return value + 1

    @parts.timed("verl", "work")
    class Verls(Base): ...

    @parts.timed("ours", "work")
    class Ours(Verls):
        def work(self, value):
            return super().work(value) * 2

    assert Verls().work(1) == 2
    parts.PARTS.take()
    assert Ours().work(1) == 4
    assert set(parts.PARTS.take()) == {"ours work", "verl work"}


def test_the_driver_table_adds_up_ours_and_verls():
    row = {
        "parts": {"ours a": 0.25, "ours b": 0.5, "verl c": 2.0, "simulated d": 9.0},
        **{"stall_s": 0.02, "stall_cpu_s": 0.01, "worker_cpu_s": 1.0, "rollout_s": 3.0},
        **{"worker_bytes": 4e6, "driver_bytes": 6e6, "peak_mib": {"ControlWorker": 700.0}},
    }
    later = row | {"parts": row["parts"] | {"ours b": 0.75}, "worker_cpu_s": 0.8}
    assert driver_s(row, "ours") == 0.75
    head, line, *_ = control_lines({100: [row, later]})
    assert head.startswith("prompts | driver: ours s | verl's s")
    assert line == "100 | 0.750 | 2.00 | 8.0 | 20 (10) | 4 + 6 | 3.0"
