"""Which prompts of a step are kept: odd ones over-represented, some blindly, always the same."""

import asyncio
import json
import random
from collections import Counter

from fakes import ScriptedEngine, make_rollout, problem
from records import record

from recipe.hint.methods.grpo import Grpo
from recipe.hint.samples import REASONS, SampleChooser, SampleSettings, pack_sample
from recipe.hint.schema import Response
from recipe.hint.turns import Place, Round, Sample, Turn
from recipe.verify.schema import Verdict

PACKED = pack_sample(
    problem(),
    [
        Round(
            Sample(),
            (Turn((), [], Response([], [], "r", False), Verdict(1.0, "correct", "2 or 3")),),
        )
    ],
    {Place(0, 0): 1.0},
    {},
    SampleSettings().text_bytes,
)


def prompts(count, odd=(), **more):
    """``count`` ordinary prompts, then one for each of ``odd``, a mapping of record fields."""
    plain = [
        record(f"p{n}", groups=[(0, [1, 0])], bases={"number": 2}, **more) for n in range(count)
    ]
    return plain + [
        record(f"odd{n}", **({"groups": [(0, [1, 0])], "bases": {"number": 2}} | fields))
        for n, fields in enumerate(odd)
    ]


def choose(records, step=1, *, chooser=None, places=8, seed=1):
    chooser = chooser or SampleChooser(SampleSettings(prompts_per_step=places), seed)
    return chooser.update(step, records, {each.uid: PACKED for each in records})


ODD = (
    {"num_ignored": 1},
    {"num_second": 1, "num_disagreed": 1},
    {"ungraded": (1,)},
    {"earning_bases": ("text",)},
    {"groups": [(0, [0]), (1, [1])], "leaked_levels": (1,), "ungraded": (0, 0)},
)


def test_odd_prompts_are_all_kept_among_many_ordinary_ones_with_the_reason():
    rows = choose(prompts(123, ODD))
    # 128 prompts, 8 places: 2 blind, 5 odd; one place that no odd prompt claims stays empty.
    assert len(rows) == 7
    why = {row["problem_id"]: [name for name in row["why"] if name != "random"] for row in rows}
    assert {name: why[name] for name in why if name.startswith("odd")} == {
        "odd0": ["ignored"],
        "odd1": ["disagrees"],
        "odd2": ["ungraded"],
        "odd3": ["rare_basis"],
        "odd4": ["leaked"],
    }
    assert sum("random" in row["why"] for row in rows) == 2


def test_a_common_oddness_does_not_crowd_out_a_rare_one():
    rows = choose(prompts(0, [*[{"ungraded": (1,)}] * 100, {"num_ignored": 1}]))
    assert len(rows) == 8
    assert any("ignored" in row["why"] for row in rows)


def test_the_blind_part_is_unbiased_and_bounded():
    half = prompts(64, [{"num_ignored": 1}] * 64)
    drawn = Counter()
    for step in range(1, 1001):
        rows = choose(half, step)
        assert len(rows) == 8
        blind = [row for row in rows if "random" in row["why"]]
        assert len(blind) == 2
        drawn.update("ignored" in row["why"] for row in blind)
    # 2000 draws at 1/2: 1000 expected, standard deviation 22.
    assert 900 < drawn[True] < 1100


def test_the_same_seed_and_step_choose_the_same_prompts_in_any_order_of_arrival():
    records = prompts(50, ODD)
    rows = choose(records)
    random.Random(3).shuffle(records)
    assert choose(records) == rows
    others = [choose(prompts(50, ODD), step=2), choose(prompts(50, ODD), seed=2)]
    ids = [row["problem_id"] for row in rows]
    assert all([row["problem_id"] for row in other] != ids for other in others)


def test_no_places_give_no_rows_and_few_prompts_are_enough():
    assert choose(prompts(5, ODD), places=0) == []
    assert len(choose(prompts(1), places=1)) == 1
    assert choose([]) == []
    chooser = SampleChooser(SampleSettings(), 1)
    assert chooser.update(1, prompts(3), {}) == []  # no texts, as when samples are off
    assert chooser.metrics() == {"new_shape": 0.0}


def test_a_form_that_begins_to_earn_is_noticed_and_an_old_one_is_not():
    chooser = SampleChooser(SampleSettings(), 1)
    old, hack = ("a=0",), ("0a0",)
    for step in range(1, 6):  # 10 of 100 prompts earn in the old form, from the beginning
        records = prompts(90, [{"shapes": old}] * 10)
        choose(records, step, chooser=chooser)
        assert chooser.metrics() == {"new_shape": 0.0}
    # 5 of 100 in a form never seen: at least 3, and 0.05 >= 4 x 0.5 / 501.
    rows = choose(prompts(85, [{"shapes": old}] * 10 + [{"shapes": hack}] * 5), 6, chooser=chooser)
    assert chooser.metrics() == {"new_shape": 0.05}
    found = [row for row in rows if "new_shape" in row["why"]]
    assert len(found) >= 5
    assert all(row["responses"][0]["why"] == ["new_shape"] for row in found)
    # 2 prompts are too few for any form.
    choose(prompts(98, [{"shapes": ("0!0",)}] * 2), 7, chooser=chooser)
    assert chooser.metrics() == {"new_shape": 0.0}


def test_a_trick_that_is_written_differently_each_time_is_new_all_the_same():
    chooser = SampleChooser(SampleSettings(), 1)
    for step in range(1, 11):  # one form a step that was never seen is usual: 1 of 100
        choose(prompts(99, [{"shapes": (f"0^{step}",)}]), step, chooser=chooser)
        assert chooser.metrics() == {"new_shape": 0.0}
    # 6 of 100, each once: 0.06 >= 4 x 10.5 / 1001.
    tricks = [{"shapes": ("0" + "!" * n,)} for n in range(1, 7)]
    rows = choose(prompts(94, tricks), 11, chooser=chooser)
    assert chooser.metrics() == {"new_shape": 0.06}
    assert sum("new_shape" in row["why"] for row in rows) == 6


def test_a_first_step_has_nothing_to_compare_with():
    chooser = SampleChooser(SampleSettings(), 1)
    choose(prompts(0, [{"shapes": ("0a0",)}] * 8), chooser=chooser)
    assert chooser.metrics() == {"new_shape": 0.0}


def test_the_memory_of_shapes_is_bounded_and_keeps_the_frequent_ones():
    chooser = SampleChooser(SampleSettings(), 1)
    for step in range(1, 40):
        more = [{"shapes": ("a=0", f"s{step}-{n}")} for n in range(300)]
        chooser.update(step, prompts(0, more), {})
    counts = chooser.state_dict()["counts"]
    assert len(counts) <= 4096
    assert counts["a=0"] == 39 * 300


def test_a_resumed_run_chooses_what_the_straight_one_chose():
    steps = [prompts(90, [{"shapes": ("0a0",)}] * 6), prompts(80, [{"shapes": ("0!",)}] * 9)]
    straight = SampleChooser(SampleSettings(), 1)
    choose(steps[0], 1, chooser=straight)
    state = json.loads(json.dumps(straight.state_dict()))
    expected = choose(steps[1], 2, chooser=straight)
    resumed = SampleChooser(SampleSettings(), 1)
    resumed.load_state_dict(state)
    assert choose(steps[1], 2, chooser=resumed) == expected
    assert resumed.state_dict() == straight.state_dict()


def test_every_reason_is_a_known_one_and_hints_that_leak_are_marked():
    leaked = record("l", groups=[(0, [0]), (1, [1])], leaked_levels=(0,), bases={"number": 2})
    [row] = choose([leaked])
    assert row["rounds"][0]["leaks"] is True
    rows = choose(prompts(123, ODD))
    assert {name for row in rows for name in row["why"]} <= set(REASONS)
    assert set(rows[0]) >= {"step", "why", "problem_id", "uid", "problem", "answer", "responses"}


class Learns(ScriptedEngine):
    """A policy that may have found out that text after the number is ignored."""

    def __init__(self, hacks):
        super().__init__({0: [1, 0]})
        self.hacks = hacks

    async def grade(self, problem, responses_G):
        told = "2 or 7" if self.hacks else "2"
        ignored = "or 7" if self.hacks else ""
        return [
            Verdict(1.0, "correct", told, "number", ignored),
            Verdict(0.0, "wrong", "3", "number"),
        ]


def test_a_hack_that_spreads_is_in_the_samples_of_the_step_it_begins_in():
    chooser = SampleChooser(SampleSettings(), 1)
    alone = SampleSettings(second_judge_share=0.0)
    shown = {}
    for step in range(1, 9):
        hackers = {6: 4, 7: 30, 8: 60}.get(step, 0)
        outcomes = []
        for n in range(64):
            engine = Learns(hacks=n < hackers)
            made = make_rollout(Grpo(), engine, item=problem(problem_id=f"p{n}"), samples=alone)
            outcomes.append(asyncio.run(made.run(f"uid{n}", step)))
        records = [outcome.record for outcome in outcomes]
        rows = chooser.update(step, records, {each.record.uid: each.sample for each in outcomes})
        shown[step] = Counter(name for row in rows for name in row["why"])
    assert all(set(shown[step]) == {"random"} for step in range(1, 6))
    # 4 of 64 prompts are 6 % of the step and, with those the blind places hold, all in its samples.
    assert shown[6]["ignored"] == shown[6]["new_shape"] == 4
    for step in (7, 8):
        assert shown[step]["ignored"] >= 6  # of 8
        assert shown[step]["new_shape"] >= 6  # 30 of 64 after 4 of 384
    [answer] = [each for each in rows[-1]["responses"] if each["score"] > 0]
    assert (answer["extracted"], answer["ignored"], answer["why"]) == (
        "2 or 7",
        "or 7",
        ["ignored", "new_shape"],
    )
