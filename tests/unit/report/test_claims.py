"""Claims and budgets of campaigns: what is measured of them, and what that says."""

import json
import shutil

import pytest
from campaign_runs import ONE, claims, write_campaign

from recipe.run.errors import ConfigError, DataError
from recipe.study.campaign import Claim
from recipe.study.estimators import Estimate
from recipe.study.report.campaign import side_of
from recipe.study.report.campaign_folder import keep_results, read_results_of
from recipe.study.report.campaign_page import results_page


def verdict(root, claim):
    result = read_results_of(root)
    return result.verdict(result.campaign.claims[claim])[1]


def test_a_bound_holds_where_the_interval_of_every_seed_is_on_its_side(tmp_path):
    many = {f"p{number}": "-+ -+" for number in range(40)}  # +1 on 40 problems
    # +1/2 on all: 1 - 0.025 ** (1 / 40) = 8.8 % of other problems may differ, by -1.5 or +0.5.
    # So 0.37 to 0.54.
    some = {f"p{number}": "-+ --" for number in range(40)}
    asked = claims({"at_least": 0.35}, {"at_least": 0.8}, {"below": 0.6})
    root = write_campaign(tmp_path, {"x": {1: many, 2: some}}, claims=asked)
    # 0.6 is above all of `some` and below all of `many`.
    assert [verdict(root, each) for each in range(3)] == ["holds", "fails", "fails"]


def test_a_bound_is_not_known_to_hold_while_a_seed_is_missing_but_known_to_fail(tmp_path):
    some = {f"p{number}": "-+ --" for number in range(40)}
    asked = claims({"at_least": 0.35}, {"at_least": 0.6})
    root = write_campaign(tmp_path, {"x": {1: some}}, claims=asked)
    assert [verdict(root, each) for each in range(2)] == ["not known", "fails"]


def test_more_than_another_arm_is_a_difference_whose_interval_is_above_0(tmp_path):
    better = {f"p{number}": "-+ --" for number in range(40)}
    alike = {f"p{number}": "-- --" if number % 2 else "-+ -+" for number in range(40)}
    worse = {f"p{number}": "-- --" for number in range(40)}
    arms = {"x": better, "alike": alike, "worse": worse}
    asked = [
        {"arm": "x", "source": "toy", "measure": "acc_t2", "more_than": other}
        for other in ("worse", "alike")
    ]
    asked += [asked[1] | {"arm": "alike", "more_than": "x"}]
    asked += [asked[0] | {"arm": "worse", "more_than": "x"}]
    runs = {name: dict.fromkeys((1, 2, 3), each) for name, each in arms.items()}
    root = write_campaign(tmp_path, runs, claims=asked, seeds=[1, 2, 3])
    # A claim and its opposite may both be undecided.
    verdicts = ["holds", "undecided", "undecided", "fails"]
    assert [verdict(root, each) for each in range(4)] == verdicts
    for seed in (2, 3):
        for name in arms:
            shutil.rmtree(root / f"{name}/seed-{seed}")
        (root / "campaign.yaml").write_text(
            (root / "campaign.yaml").read_text().replace("- 2\n", "").replace("- 3\n", "")
        )
    assert [verdict(root, each) for each in range(4)] == ["not known"] * 4  # one seed


def test_an_end_that_is_shown_as_the_bound_is_taken_as_the_bound():
    bounds = claims({"at_least": 0.30}, {"below": 0.10}, {"more_than": "y"})
    sides = [
        side_of(Claim(**claim), Estimate(value, value - 0.05, value + 0.05))
        for claim, value in zip(bounds, (0.34962, 0.04998, 0.0502), strict=True)
    ]
    # 29.962 is shown as 30.0, 9.998 as 10.0, 0.02 as 0.0.
    assert sides == ["holds", "undecided", "undecided"]


def test_by_moves_the_bound_of_a_comparison():
    claim = {"arm": "x", "source": "toy", "measure": "accuracy", "more_than": "y", "by": -0.02}
    # No more than 2 points below y: from -1 on surely, from -3 on perhaps, below -2 surely not.
    ends = [(-0.01, 0.05), (-0.03, 0.05), (-0.05, -0.03)]
    sides = [side_of(Claim(**claim), Estimate(low, low, high)) for low, high in ends]
    assert sides == ["holds", "undecided", "fails"]


def test_a_budget_is_a_ratio_of_tokens_with_an_interval_over_seeds(tmp_path):
    factors = {1: 1.0, 2: 1.1, 3: 1.21}
    budgets = [{"arm": "x", "tokens_of": "y", "at_most": each} for each in (1.5, 1.15, 0.8)]
    arms = {name: dict.fromkeys(factors, ONE) for name in ("x", "y")}
    root = write_campaign(tmp_path, arms, seeds=list(factors), budgets=budgets)
    for seed, factor in factors.items():
        for arm, more in (("x", 1000 * factor - 1000), ("y", 0)):
            row = {"step": 3, "hint/prompts": 2, "hint/rollout_tokens": 0, "hint/tokens": more}
            with open(root / f"{arm}/seed-{seed}/metrics.jsonl", "a") as metrics:
                metrics.write(json.dumps(row) + "\n")
    # 1,000 tokens of y. Logarithms 0, l, 2 l with l = ln 1.1: mean l, error l / sqrt(3), t(2) =
    # 4.303. So 1.1 ** (1 -+ 4.303 / sqrt(3)): 0.87 to 1.39.
    result = read_results_of(root)
    told = [result.cost(each) for each in result.campaign.budgets]
    assert told == [
        ("1.10 (0.87 - 1.39)", "holds"),
        ("1.10 (0.87 - 1.39)", "undecided"),
        ("1.10 (0.87 - 1.39)", "fails"),
    ]
    assert "| **x: at most 0.8 times the tokens of y** " in results_page([result])
    shutil.rmtree(root / "y/seed-2")
    result = read_results_of(root)
    assert result.cost(result.campaign.budgets[0]) == ("1.00; 1.21", "not known")


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"measure": "acc2", "below": 0.1}, "measure=acc2; choose from acc_t1, acc_t2, delta"),
        ({"at_least": 30}, "has delta at 30; give a share from -1 to 1, not per cent"),
        ({"measure": "acc_t2", "at_least": -0.1}, "give a share from 0 to 1"),
        ({"more_than": "y", "by": -2}, "by=-2; give a share above -1 and below 1, not per cent"),
        ({"more_than": "x", "by": -0.02}, "a claim compares x with itself"),
        ({"below": 0.1, "by": 0.1}, "by=0.1; give a share .* beside more_than"),
    ],
)
def test_a_claim_that_can_say_nothing_is_refused(tmp_path, claim, says):
    with pytest.raises(ConfigError, match=says):
        write_campaign(tmp_path, {"x": {}, "y": {}}, claims=claims(claim))


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: lines[:-1],  # step 2 is lost
        lambda lines: [lines[0], lines[1].replace("hint/tokens", "hint/token"), lines[2]],
        lambda lines: [*lines[:2], "{\n", lines[2]],
        lambda lines: [lines[0], lines[2]],
    ],
    ids=["a step less", "a number less", "a damaged line", "no first step"],
)
def test_a_budget_of_a_run_without_a_part_of_its_lines_is_not_known(tmp_path, damage):
    budgets = [{"arm": "x", "tokens_of": "y", "at_most": 1.5}]
    arms = {name: dict.fromkeys((1, 2, 3), ONE) for name in ("x", "y")}
    root = write_campaign(tmp_path, arms, seeds=[1, 2, 3], budgets=budgets)
    result = read_results_of(root)
    assert result.cost(result.campaign.budgets[0]) == ("1.00 (1.00 - 1.00)", "holds")
    path = root / "x/seed-2/metrics.jsonl"
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    result = read_results_of(root)
    assert result.cost(result.campaign.budgets[0])[1] == "not known"


def write_clear_comparison(folder):
    most, none = ({f"p{n}": letters for n in range(40)} for letters in ("++++", "----"))
    arms = {"x": dict.fromkeys((1, 2, 3), most), "y": dict.fromkeys((1, 2, 3), none)}
    claim = {"arm": "x", "source": "toy", "measure": "accuracy", "more_than": "y"}
    return write_campaign(folder, arms, seeds=[1, 2, 3], claims=[claim])


def test_a_comparison_of_responses_that_were_drawn_differently_is_not_known(tmp_path):
    root = write_clear_comparison(tmp_path)
    assert verdict(root, 0) == "holds"
    for path in root.glob("y/*/evaluation/results.json"):
        path.write_text(path.read_text().replace('"temperature": 1.0', '"temperature": 0.1'))
    assert verdict(root, 0) == "not known"


def test_a_comparison_of_an_arm_whose_seeds_trained_for_other_lengths_is_not_known(tmp_path):
    root = write_clear_comparison(tmp_path)
    path = root / "x/seed-2/metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    assert verdict(root, 0) == "not known"
    page = results_page([read_results_of(root)])
    assert "- Training steps of x (1, 3), y (1, 2, 3): 2\n- Training steps of x (2): 1\n" in page


@pytest.mark.parametrize("name", ["x/seed-9", "z/seed-1"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_no_seed_and_no_arm_that_was_run_is_left_out(tmp_path, name, is_kept):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    if is_kept:
        keep_results(root, tmp_path / "kept")
        root = tmp_path / "kept"
    first, other = (root / f"{each}{'.json' * is_kept}" for each in ("x/seed-1", name))
    other.parent.mkdir(exist_ok=True)
    (shutil.copy if is_kept else shutil.copytree)(first, other)
    with pytest.raises(ConfigError, match=f"is the result of {name}, no run of the campaign"):
        read_results_of(root)


def test_responses_that_were_drawn_with_the_seed_of_another_run_are_refused(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}})
    for seed in (1, 2):
        path = root / f"x/seed-{seed}/evaluation/results.json"
        path.write_text(path.read_text().replace('"temperature"', '"seed": 1, "temperature"'))
    with pytest.raises(DataError, match="x/seed-2 was evaluated with seed 1, expected its own, 2"):
        read_results_of(root)


def test_an_evaluation_of_other_weights_or_problems_is_refused(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}})
    for seed in (1, 2):
        files = {"toy.parquet": "a" * 64}
        path = root / f"x/seed-{seed}/evaluation/settings.json"
        path.write_text(json.dumps({"files": files}))
    read_results_of(root)
    path.write_text(json.dumps({"files": {"toy.parquet": "b" * 64}}))
    with pytest.raises(DataError, match="x/seed-1 and x/seed-2 .* different files toy.parquet"):
        read_results_of(root)
    path.write_text(json.dumps({"files": files}))
    results = root / "x/seed-2/evaluation/results.json"
    results.write_text(results.read_text().replace("/x/seed-2/model", "/x/seed-2/checkpoints/20"))
    with pytest.raises(DataError, match="checkpoints/20, expected the weights of the run's last"):
        read_results_of(root)


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"source": "tyo"}, "is of tyo, on which none of its runs was evaluated; choose from toy"),
        ({"measure": "acc_t2"}, "is of acc_t2 on toy, which has accuracy"),
    ],
)
def test_a_claim_that_no_run_can_decide_is_an_error_once_all_are_there(tmp_path, claim, says):
    wanted = [{"arm": "x", "source": "toy", "measure": "accuracy", "below": 0.5} | claim]
    write_campaign(tmp_path / "half", {"x": {1: ONE}}, claims=wanted)
    read_results_of(tmp_path / "half")
    write_campaign(tmp_path / "whole", {"x": {1: ONE, 2: ONE}}, claims=wanted)
    with pytest.raises(ConfigError, match=says):
        read_results_of(tmp_path / "whole")


@pytest.mark.parametrize(("bound", "verdict"), [("at_least", "holds"), ("below", "fails")])
def test_a_bound_is_compared_as_it_is_shown(bound, verdict):
    for share in (permille / 1000 for permille in range(1001)):
        claim = Claim("x", "toy", "accuracy", **{bound: share})
        assert side_of(claim, Estimate(share, share, share)) == verdict


def test_a_seed_without_the_measure_leaves_a_claim_unknown(tmp_path):
    many = {f"p{number}": "-+ -+" for number in range(40)}
    root = write_campaign(
        tmp_path, {"x": {1: many, 2: dict.fromkeys(many, "++")}}, claims=claims({"at_least": 0.3})
    )
    assert verdict(root, 0) == "not known"  # seed 2 has responses of one turn


def test_p_values_are_corrected_for_the_claims_of_all_campaigns_of_a_page(tmp_path):
    """All of 40 problems: 2 * 2 ** -40 of the two that differ; 1 of the two that do not."""
    right = {f"p{number}": "-+ -+" for number in range(40)}
    wrong = {f"p{number}": "-- --" for number in range(40)}
    above = {"arm": "x", "source": "toy", "measure": "acc_t2", "more_than": "y"}
    asked = [above, above | {"by": 0.1}, {**above, "more_than": None, "at_least": 0.5}]
    asked = [{name: each for name, each in claim.items() if each is not None} for claim in asked]
    pages = []
    for name, other in (("one", wrong), ("two", right)):
        runs = {"x": dict.fromkeys((1, 2, 3), right), "y": dict.fromkeys((1, 2, 3), other)}
        pages.append(write_campaign(tmp_path / name, runs, claims=asked, seeds=[1, 2, 3]))
    page = results_page([read_results_of(each) for each in pages])
    cells = [line.split("|")[4].strip() for line in page.splitlines() if "last turn on toy" in line]
    assert cells == ["< 0.001 (< 0.001)", "-", "-", "1 (1)", "-", "-"]
    assert "for all 2\n" in page


def test_a_source_of_one_problem_has_a_page_without_p_values(tmp_path):
    runs = {
        name: dict.fromkeys((1, 2, 3), {"a": each})
        for name, each in (("x", "-+ -+"), ("y", "-- --"))
    }
    asked = [{"arm": "x", "source": "toy", "measure": "acc_t2", "more_than": "y"}]
    root = write_campaign(tmp_path, runs, claims=asked, seeds=[1, 2, 3])
    page = results_page([read_results_of(root)])
    [line] = [line for line in page.splitlines() if "last turn on toy above" in line]
    assert line.split("|")[4].strip() == "-"
