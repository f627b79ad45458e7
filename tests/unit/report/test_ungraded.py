"""A campaign in which the verifier failed on some responses: shown, told, and never decisive."""

import json
import random

import pytest
from campaign_runs import claims, write_campaign, write_evaluation
from response_rows import rows, turn_facts

from recipe.study.report.campaign_folder import keep_results, read_results_of
from recipe.study.report.campaign_page import results_page

SEEDS = (1, 2, 3)


def set_verdicts(run, verdicts, firsts=None):
    """``verdicts``: problem -> ``+``, ``-`` and ``t``, a timeout; ``firsts`` of first turns."""
    lines = rows("toy", **verdicts)
    if firsts:
        for line, first in zip(lines, "".join(firsts.values()), strict=True):
            is_known = line["reason"] != "timeout"
            line["facts"] = turn_facts(float(first == "+"), line["score"]) if is_known else None
    for path in (run / "evaluation/samples").glob("*"):
        path.unlink()
    write_evaluation(run, lines, list(verdicts))


def two_arms(root, asked=()):
    whole = dict.fromkeys(SEEDS, {f"p{n}": "++++" for n in range(20)})
    arms = {"x": whole, "y": whole}
    return write_campaign(root, arms, claims=list(asked), seeds=list(SEEDS))


def test_grades_that_are_missing_decide_no_claim(tmp_path):
    claim = {"arm": "y", "source": "toy", "measure": "accuracy", "more_than": "x"}
    root = two_arms(tmp_path / "runs", [claim])
    for seed in SEEDS:  # both arms are right throughout
        set_verdicts(root / f"x/seed-{seed}", {f"p{n}": "+++t" for n in range(20)})
    result = read_results_of(root)
    assert result.verdict(result.campaign.claims[0])[1] == "not known"
    page = results_page([result])
    assert "x/seed-1 20 of 80 of toy, x/seed-2 20 of 80 of toy, x/seed-3 20 of 80" in page
    keep_results(root, tmp_path / "kept")
    assert results_page([read_results_of(tmp_path / "kept")]) == page


def test_few_missing_grades_leave_a_clear_verdict_as_it_is(tmp_path):
    asked = {"arm": "y", "source": "toy", "measure": "accuracy", "more_than": "x"}
    root = two_arms(tmp_path, [asked])
    for seed in SEEDS:
        wrong = {f"p{n}": "----" for n in range(20)} | {"p3": "-t--"}
        set_verdicts(root / f"x/seed-{seed}", wrong)
    result = read_results_of(root)
    assert result.verdict(result.campaign.claims[0])[1] == "holds"


@pytest.mark.parametrize("seed", range(60))
def test_a_verdict_with_missing_grades_is_that_of_every_way_they_could_be(tmp_path, seed):
    """Fill them in at random: what holds or fails without them does so with them."""
    draw = random.Random(seed)
    size, share = draw.choice([3, 8, 20]), draw.choice([0.02, 0.1, 0.5])
    measure = draw.choice(["accuracy", "acc_t1", "acc_t2", "delta", "wrong_to_right"])
    is_multi_turn = measure != "accuracy"
    bound = draw.choice([{"more_than": "x"}, {"at_least": 0.5}, {"below": 0.5}])
    asked = {"arm": "y", "source": "toy", "measure": measure} | bound
    root = two_arms(tmp_path, [asked])

    def letters(chance):
        return {
            f"p{n}": "".join("+" if draw.random() < chance else "-" for _ in range(4))
            for n in range(size)
        }

    def hidden(found):
        return {
            name: "".join("t" if draw.random() < share else each for each in row)
            for name, row in found.items()
        }

    def verdict(runs):
        for name, (firsts, lasts) in runs.items():
            set_verdicts(root / name, lasts, firsts if is_multi_turn else None)
        result = read_results_of(root)
        return result.verdict(result.campaign.claims[0])[1]

    chances = {"x": draw.choice([0.1, 0.5]), "y": draw.choice([0.3, 0.9])}
    whole = {
        f"{arm}/seed-{each}": (letters(chances[arm] / 2), letters(chances[arm]))
        for arm in "xy"
        for each in SEEDS
    }
    partly = {name: (firsts, hidden(lasts)) for name, (firsts, lasts) in whole.items()}
    found = verdict(partly)
    if found in ("holds", "fails"):
        assert verdict(whole) == found


def test_one_unknown_conversation_leaves_the_page_of_turns_whole(tmp_path):
    root = write_campaign(
        tmp_path,
        {"x": {seed: {"a": "-+ -+", "b": "-+ ++", "c": "-- --"} for seed in SEEDS}},
        claims=claims({"at_least": -0.9}),
        seeds=list(SEEDS),
    )
    lasts = {"a": "++", "b": "+t", "c": "tt"}
    set_verdicts(root / "x/seed-2", lasts, {"a": "--", "b": "-+", "c": "--"})
    result = read_results_of(root)
    # b is known in one of two conversations, in which it changes by 1; c is not known at all.
    assert result.seeds["x"][2].means["toy"]["delta"] == {"a": 1.0, "b": 1.0}
    assert result.seeds["x"][2].ungraded == {"toy": {"b": 1, "c": 2}}
    # The problems that all seeds know: a changes by 1 in each, b by 1/2, 1 and 1/2.
    assert result.estimate("x", "toy", "delta").value == pytest.approx((3 + 2) / 6)
    page = results_page([result])
    assert "x/seed-2 3 of 6 of toy" in page
    assert "Evaluated: the weights of the last step, 3 problems of toy" in page
    assert "accuracy" not in json.dumps(sorted(result.measures("toy")))
