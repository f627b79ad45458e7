"""Which prompts of a step are kept: some blindly, the others flagged, always the same."""

import random
from collections import Counter

from fakes import problem
from records import record

from recipe.hint.samples import SampleSettings, choose_samples, pack_sample
from recipe.hint.schema import Response
from recipe.hint.turns import Place, Round, Sample, Turn
from recipe.verify.schema import Verdict

TURN = Turn((), [], Response([], [], "r", False), Verdict(1.0, "correct", "2 or 3"))
PACKED = pack_sample(
    problem(), [Round(Sample(), (TURN,))], {Place(0, 0): 1.0}, SampleSettings().text_bytes
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


def choose(records, step=1, *, places=8, seed=1, packed=None):
    packed = {each.uid: PACKED for each in records} if packed is None else packed
    settings = SampleSettings(prompts_per_step=places)
    return choose_samples(records, packed, settings=settings, seed=seed, step=step)


ODD = (
    {"num_ignored": 1},
    {"ungraded": (1,)},
    {"groups": [(0, [0]), (1, [1])], "leaked_levels": (1,), "ungraded": (0, 0)},
)


def test_flagged_prompts_are_all_kept_among_many_ordinary_ones_with_the_reason():
    rows = choose(prompts(123, ODD))
    # 126 prompts, 8 places: 2 blind, 3 flagged; places that no flagged prompt claims stay empty.
    assert len(rows) == 5
    why = {row["problem_id"]: [name for name in row["why"] if name != "random"] for row in rows}
    assert {name: why[name] for name in why if name.startswith("odd")} == {
        "odd0": ["ignored"],
        "odd1": ["ungraded"],
        "odd2": ["leaked"],
    }
    assert sum("random" in row["why"] for row in rows) == 2


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


def test_every_reason_is_a_known_one_and_hints_that_leak_are_marked():
    leaked = record("l", groups=[(0, [0]), (1, [1])], leaked_levels=(0,), bases={"number": 2})
    [row] = choose([leaked])
    assert row["rounds"][0]["leaks"] is True
    rows = choose(prompts(123, ODD))
    why = {name for row in rows for name in row["why"]}
    assert why <= {"random", "ignored", "leaked", "ungraded"}
    assert set(rows[0]) >= {"step", "why", "problem_id", "uid", "problem", "answer", "responses"}
