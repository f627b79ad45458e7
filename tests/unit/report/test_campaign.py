"""What is said of a campaign's runs: estimates, claims, the page, and what is kept."""

import json
import shutil

import pytest
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign, write_evaluation
from ends import code_of
from response_rows import rows

from recipe.run.errors import ConfigError, DataError
from recipe.study.campaign import Claim
from recipe.study.campaign_page import results_page
from recipe.study.campaign_results import _side, keep_results, read_results_of
from recipe.study.estimators import Estimate
from recipe.study.report_command import main

SEEDS = (1, 2, 3)
MANY = {f"p{number}": "-+ -+" for number in range(40)}  # +1 on 40 problems
SOME = dict.fromkeys(MANY, "-+ --")  # +1/2
NONE = dict.fromkeys(MANY, "-- --")


def verdict(root, claim=0):
    result = read_results_of(root)
    return result.verdict(result.campaign.claims[claim])[1]


def row_of(page, heading, arm="x"):
    lines = page.split(f"### {heading}")[1].split("\n")
    cells = next(line for line in lines if line.startswith(f"| {arm} "))
    return [each.strip() for each in cells.split("|")[2:-1]]


def set_metrics(root, run, change):
    path = root / run / "metrics.jsonl"
    rows_of_run = [json.loads(line) for line in path.open()]
    path.write_text("".join(json.dumps(each) + "\n" for each in change(rows_of_run)))


def test_an_arms_accuracy_is_the_mean_over_seeds_and_problems(tmp_path):
    # Seed 1: (1 + 1/2 + 0) / 3 = 1/2, seed 2: (1 + 0 + 0) / 3 = 1/3; their mean 5/12.
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE | {"b": "----"}}})
    found = read_results_of(root).estimate("x", "toy", "accuracy")
    assert found.value == pytest.approx(5 / 12)
    assert 0 <= found.low < found.value < found.high <= 1


def test_differences_are_taken_problem_by_problem_and_seed_by_seed(tmp_path):
    # y solves one response of each problem more than x, in each seed: 1/4 everywhere. Nothing is
    # left to estimate an error from but that three problems were seen.
    more = {"a": "+++-", "b": "++--", "c": "+---"}
    less = {"a": "++--", "b": "+---", "c": "----"}
    root = write_campaign(
        tmp_path, {"x": dict.fromkeys((1, 2), less), "y": dict.fromkeys((1, 2), more)}
    )
    found = read_results_of(root).estimate("y", "toy", "accuracy", "x")
    assert found.value == pytest.approx(0.25)
    swapped = read_results_of(root).estimate("x", "toy", "accuracy", "y")
    assert swapped.value == pytest.approx(-0.25)


def test_two_turns_have_what_the_second_changed(tmp_path):
    result = read_results_of(write_campaign(tmp_path, {"x": {1: CONVERSATIONS}}))
    values = {name: result.estimate("x", "toy", name).value for name in result.measures("toy")}
    assert values == pytest.approx(
        {
            "acc_t1": 1 / 6,  # one of six
            "acc_t2": 5 / 6,
            "delta": 4 / 6,
            "wrong_to_right": 4 / 6,
            "right_to_wrong": 0,
            "unchanged": 2 / 6,
        }
    )


def test_a_bound_holds_where_the_interval_of_every_seed_is_on_its_side(tmp_path):
    # +1/2 on all: 1 - 0.025 ** (1 / 40) = 8.8 % of other problems may differ, by -1.5 or +0.5.
    # So 0.37 to 0.54.
    asked = claims({"at_least": 0.35}, {"at_least": 0.8}, {"below": 0.6})
    root = write_campaign(tmp_path, {"x": {1: MANY, 2: SOME}}, claims=asked)
    # 0.6 is above all of `SOME` and below all of `MANY`.
    assert [verdict(root, each) for each in range(3)] == ["holds", "fails", "fails"]


def test_a_bound_is_not_known_to_hold_while_a_seed_is_missing_but_known_to_fail(tmp_path):
    asked = claims({"at_least": 0.35}, {"at_least": 0.6})
    root = write_campaign(tmp_path, {"x": {1: SOME}}, claims=asked)
    assert [verdict(root, each) for each in range(2)] == ["not known", "fails"]


def test_a_seed_without_the_measure_leaves_a_claim_unknown(tmp_path):
    arms = {"x": {1: MANY, 2: dict.fromkeys(MANY, "++")}}  # seed 2 has responses of one turn
    assert verdict(write_campaign(tmp_path, arms, claims=claims({"at_least": 0.3}))) == "not known"


def test_more_than_another_arm_is_a_difference_whose_interval_is_above_0(tmp_path):
    alike = {name: "-- --" if at % 2 else "-+ -+" for at, name in enumerate(MANY)}
    arms = {"x": SOME, "alike": alike, "worse": NONE}
    pairs = [("x", "worse"), ("x", "alike"), ("alike", "x"), ("worse", "x")]
    asked = [
        {"arm": arm, "source": "toy", "measure": "acc_t2", "more_than": other}
        for arm, other in pairs
    ]
    asked.append(asked[1] | {"by": -0.9})
    runs = {name: dict.fromkeys(SEEDS, each) for name, each in arms.items()}
    root = write_campaign(tmp_path, runs, claims=asked, seeds=[*SEEDS])
    # A claim and its opposite may both be undecided.
    verdicts = ["holds", "undecided", "undecided", "fails", "holds"]
    assert [verdict(root, each) for each in range(5)] == verdicts
    for name in arms:
        shutil.rmtree(root / f"{name}/seed-3")
    text = (root / "campaign.yaml").read_text().replace("- 3\n", "")
    (root / "campaign.yaml").write_text(text)
    assert [verdict(root, each) for each in range(4)] == ["not known"] * 4  # two seeds


def clear_comparison(folder):
    arms = {name: dict.fromkeys(SEEDS, each) for name, each in (("x", MANY), ("y", NONE))}
    claim = {"arm": "x", "source": "toy", "measure": "acc_t2", "more_than": "y"}
    return write_campaign(folder, arms, seeds=[*SEEDS], claims=[claim])


def test_arms_that_were_drawn_or_trained_differently_are_not_compared(tmp_path):
    drawn, trained, seed = (clear_comparison(tmp_path / name) for name in "abc")
    assert verdict(drawn) == "holds"
    for path in drawn.glob("y/*/evaluation/results.json"):
        path.write_text(path.read_text().replace('"temperature": 1.0', '"temperature": 0.1'))
    for path in [*trained.glob("y/*/metrics.jsonl"), seed / "x/seed-2/metrics.jsonl"]:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    assert [verdict(each) for each in (drawn, trained, seed)] == ["not known"] * 3
    page = results_page([read_results_of(seed)])
    assert "- Training steps of x (1, 3), y (1, 2, 3): 2\n- Training steps of x (2): 1\n" in page


def test_bounds_and_intervals_are_compared_as_they_are_shown(tmp_path):
    # 29.962 is shown as 30.0, 9.998 as 10.0, 0.02 as 0.0; `by` moves the bound.
    given = [
        ({"at_least": 0.30}, 0.29962, 0.4, "holds"),
        ({"below": 0.10}, 0.0, 0.09998, "undecided"),
        ({"more_than": "y"}, 0.0002, 0.1, "undecided"),
        ({"more_than": "y", "by": -0.02}, -0.01, 0.05, "holds"),
        ({"more_than": "y", "by": -0.02}, -0.05, -0.03, "fails"),
    ]
    for bound, low, high, expected in given:
        claim = Claim("x", "toy", "acc_t2", **bound)
        assert _side(claim, Estimate(low, low, high)) == expected


def test_p_values_are_corrected_for_the_claims_of_all_campaigns_of_a_page(tmp_path):
    """All of 40 problems: 2 * 2 ** -40 of the two that differ; 1 of the two that do not."""
    above = {"arm": "x", "source": "toy", "measure": "acc_t2", "more_than": "y"}
    asked = [above, above | {"by": 0.1}, {**above, "more_than": None, "at_least": 0.5}]
    asked = [{name: each for name, each in claim.items() if each is not None} for claim in asked]
    pages = []
    for name, other in (("one", NONE), ("two", MANY)):
        runs = {"x": dict.fromkeys(SEEDS, MANY), "y": dict.fromkeys(SEEDS, other)}
        pages.append(write_campaign(tmp_path / name, runs, claims=asked, seeds=[1, 2, 3]))
    page = results_page([read_results_of(each) for each in pages])
    cells = [line.split("|")[4].strip() for line in page.splitlines() if "last turn on toy" in line]
    assert cells == ["< 0.001 (< 0.001)", "-", "-", "1 (1)", "-", "-"]
    assert "for all 2\n" in page


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
    "damage",
    [
        lambda lines: lines[:-1],  # step 2 is lost
        lambda lines: [lines[0], lines[1].replace("hint/tokens", "hint/token"), lines[2]],
        lambda lines: [*lines[:2], "{\n", lines[2]],
    ],
    ids=["a step less", "a number less", "a damaged line"],
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


def test_the_page_tells_what_became_of_a_run_and_what_sets_evaluations_apart(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}, "y": {1: ONE, 2: ONE}})
    stored = root / "y/seed-2/evaluation/results.json"
    stored.write_text(stored.read_text().replace('"temperature": 1.0', '"temperature": 0.0'))
    ended = root / "x/seed-2"
    (ended / "logs").mkdir(parents=True)
    shutil.copy(root / "x/seed-1/metrics.jsonl", ended)
    (ended / "logs/fatal.json").write_text('{"error": "the loss is nan\\nat step 2"}')
    with open(root / "y/seed-1/metrics.jsonl", "a") as metrics:
        metrics.write("damaged\n")
    page = results_page([read_results_of(root)])
    assert "- **Not finished**: x/seed-2 at step 2, ended by: the loss is nan at step 2\n" in page
    assert "- Drawn of x (1), y (1): K = 4 each (temperature 1.0)\n" in page
    assert "- Drawn of y (2): K = 4 each (temperature 0.0)\n" in page
    assert "- **Damaged lines, left out**: y/seed-1 1 of metrics.jsonl\n" in page


def test_the_page_shows_failed_claims_in_bold_and_runs_that_are_missing(tmp_path):
    asked = claims({"below": -0.5}, {"at_least": 0.9})
    asked[1] |= {"measure": "acc_t2"}
    root = write_campaign(tmp_path, {"x": {1: CONVERSATIONS}}, claims=asked, seeds=[1, 2])
    page = results_page([read_results_of(root)])
    assert "| **x: delta on toy below -50.0, every seed** " in page
    assert " **fails** |" in page
    assert "| x: last turn on toy at least 90.0, every seed" in page and " not known |" in page
    assert "- **Not run** (seeds): x (2)" in page
    # 90 s of steps and 1,000 tokens; half of the problems at step 2.
    cost = next(line for line in page.split("### Cost")[1].split("\n") if line.startswith("| x "))
    assert [each.strip() for each in cost.split("|")[2:5]] == ["1k", "1.00", "1.5"]
    assert "step 2, 1k tokens, 1.5 min (1 of 1)" in page
    # The last quarter of two steps is the last one: 1 - 0.25 of its groups have signal.
    assert page.split("prompts with signal, %")[1].split("\n")[2].split("|")[2].strip() == "75"


def test_arms_are_also_compared_after_equal_tokens_and_paired_by_seed(tmp_path):
    # A step samples 500 tokens, of x with seeds 2 and 3 twice as many; y has no run with seed 3.
    arms = {"y": dict.fromkeys((1, 2), ONE), "x": dict.fromkeys((1, 2, 3), ONE)}
    root = write_campaign(tmp_path, arms, seeds=[1, 2, 3], reference="y")
    for seed in (2, 3):
        set_metrics(
            root,
            f"x/seed-{seed}",
            lambda rows_of_run: [
                each | ({"hint/rollout_tokens": 1000} if "hint/tokens" in each else {})
                for each in rows_of_run
            ],
        )
    page = results_page([read_results_of(root)])
    # 0.25 at the start and 0.5 after two steps; y's 1,000 tokens are half of those of seed 2, which
    # has 0.375 there; (0.5 + 0.375) / 2 = 0.4375 over the two seeds that y has too.
    heading = "Accuracy in training's own validations, toy"
    assert row_of(page, heading)[:3] == ["25.0", "50.0", "43.8 (2)"]
    # Tokens: (1,000 + 2,000 + 2,000) / 3; times y's: the geometric mean of 1 and 2.
    assert row_of(page, "Cost")[:2] == ["2k", "1.41"]


def test_tokens_and_minutes_of_incomplete_metrics_are_not_shown(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}, "y": {1: ONE, 2: ONE}})
    set_metrics(root, "x/seed-2", lambda rows_of_run: [rows_of_run[0], rows_of_run[2]])
    set_metrics(root, "y/seed-2", lambda rows_of_run: [*rows_of_run, rows_of_run[-1]])
    page = results_page([read_results_of(root)])
    assert "- **Steps or tokens missing in the metrics**: x/seed-2, y/seed-2\n" in page
    for arm in "xy":
        assert row_of(page, "Cost", arm)[:3] == ["-", "-", "-"]
    heading = "Accuracy in training's own validations, toy"
    assert row_of(page, heading)[-2:] == ["50.0 (1)", "step 2 (2 of 2)"]


def test_responses_that_the_verifier_failed_on_are_counted_and_told(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}}, seeds=[1])
    run = root / "x/seed-1"
    shutil.rmtree(run / "evaluation")
    write_evaluation(run, rows("toy", a="+++t", b="++--", c="tttt"), ["a", "b", "c"])
    result = read_results_of(root)
    # They count as wrong: (3/4 + 1/2 + 0) / 3.
    assert result.estimate("x", "toy", "accuracy").value == pytest.approx(1.25 / 3)
    assert "x/seed-1 5 of 12 of toy" in results_page([result])


def test_what_is_not_of_the_campaign_is_refused(tmp_path):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    shutil.copytree(root / "x/seed-1", root / "z/seed-1")
    with pytest.raises(ConfigError, match="z/seed-1.*no run of campaign.yaml"):
        read_results_of(root)
    shutil.rmtree(root / "z")
    shutil.rmtree(root / "x/seed-2")
    shutil.copytree(root / "x/seed-1", root / "x/seed-2")  # one seed twice
    with pytest.raises(ConfigError, match="x/seed-2 was made with .*hint.seed=1.*hint.seed=2"):
        read_results_of(root)
    arms = {"x": {1: ONE}, "y": {1: {f"other {name}": each for name, each in ONE.items()}}}
    with pytest.raises(DataError, match="different problems of toy"):
        read_results_of(write_campaign(tmp_path / "other", arms))


def test_a_folder_without_a_finished_run_says_what_to_do(tmp_path, capsys):
    write_campaign(tmp_path, {"x": {}})
    assert code_of(main, ["campaign", str(tmp_path), "-o", str(tmp_path / "page.md")]) == 2
    assert "has no finished run; make them with main_campaign.py" in capsys.readouterr().err


def test_what_was_kept_of_runs_gives_the_same_page(tmp_path, capsys):
    asked = claims({"below": -0.5}, {"at_least": 0.9})
    arms = {"x": {1: CONVERSATIONS, 2: CONVERSATIONS}, "y": {1: CONVERSATIONS}}
    root = write_campaign(tmp_path / "runs", arms, claims=asked)
    machine = {"machine": {"driver": "two cores"}, "version": {"python": "3.11"}}
    (root / "x/seed-1/machine.json").write_text(json.dumps(machine))
    with open(root / "y/seed-1/metrics.jsonl", "a") as metrics:
        metrics.write("damaged\n")
    kept = tmp_path / "kept"
    assert main(["keep", str(root), "-o", str(kept)]) == 0
    assert capsys.readouterr().out == f"{kept}: 3 runs\n"
    page = results_page([read_results_of(root)])
    assert "two cores" in page and "damaged lines" in page.lower() and "y (2)" in page
    assert results_page([read_results_of(kept)]) == page


def test_a_campaign_that_has_grown_is_kept_in_parts(tmp_path):
    older = write_campaign(tmp_path / "older", {"x": {1: ONE}}, seeds=[1])
    newer = write_campaign(tmp_path / "newer", {"x": {}, "y": {1: ONE}}, seeds=[1])
    kept = tmp_path / "kept"
    keep_results(newer, kept)
    keep_results(older, kept)  # its campaign has one arm; the other one stays
    assert sorted(read_results_of(kept).seeds) == ["x", "y"]
    other = write_campaign(tmp_path / "other", {"z": {1: ONE}}, seeds=[1])
    with pytest.raises(ConfigError, match="campaign.yaml has no run z/seed-1 with its settings"):
        keep_results(other, kept)


def test_a_run_that_was_kept_gives_way_only_when_asked(tmp_path, capsys):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    keep_results(root, tmp_path / "kept")
    keep_results(root, tmp_path / "kept")  # the same numbers
    again = write_campaign(tmp_path / "again", {"x": {1: ONE, 2: ONE | {"c": "++++"}}})
    command = ["keep", str(again), "-o", str(tmp_path / "kept")]
    assert code_of(main, command) == 2
    assert "x/seed-2.json was kept with other numbers" in capsys.readouterr().err
    assert main([*command, "--replace"]) == 0
    assert (
        read_results_of(tmp_path / "kept").seeds["x"][2].held_out.means["toy"]["accuracy"]["c"]
        == 1.0
    )


def test_what_became_of_a_run_that_did_not_finish_is_kept_until_it_is_made(tmp_path):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    (root / "x/seed-2/evaluation/results.json").unlink()
    kept = tmp_path / "kept"
    keep_results(root, kept)
    line = "- **Not finished**: x/seed-2 at step 2"
    assert line in results_page([read_results_of(root)])
    assert results_page([read_results_of(kept)]) == results_page([read_results_of(root)])
    whole = write_campaign(tmp_path / "whole", {"x": {2: ONE}})
    keep_results(whole, kept)
    assert line not in results_page([read_results_of(kept)])
    assert not (kept / "x/seed-2.lost").exists()


def test_a_damaged_kept_file_is_one_line(tmp_path, capsys):
    keep_results(write_campaign(tmp_path / "runs", {"x": {1: ONE}}), tmp_path / "kept")
    path = tmp_path / "kept/x/seed-1.json"
    path.write_text(path.read_text().replace('"means"', '"mean"'))
    assert code_of(main, ["campaign", str(tmp_path / "kept"), "-o", str(tmp_path / "page.md")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path} is damaged: ")


def test_the_figure_has_a_line_for_each_arm_that_was_asked_for(tmp_path):
    root = write_campaign(tmp_path / "runs", {name: {1: ONE, 2: ONE} for name in "xyz"})
    figure = tmp_path / "figure.svg"
    given = ["campaign", str(root), "-o", str(tmp_path / "page.md"), "--source", "toy"]
    given += ["--figure", str(figure), "--arm", "x"]
    assert main([*given, "--arm", "z"]) == 0
    legend = [name for name in "xyz" if f">{name}</text>" in figure.read_text()]
    assert legend == ["x", "z"]


def test_arms_of_one_name_on_one_source_stay_apart_in_the_figure(tmp_path):
    first = write_campaign(tmp_path / "first", {"x": {1: ONE, 2: ONE}}, title="One world")
    second = write_campaign(tmp_path / "second", {"x": {1: ONE, 2: ONE}}, title="Another")
    figure = tmp_path / "figure.svg"
    given = ["-o", str(tmp_path / "page.md"), "--source", "toy", "--figure", str(figure)]
    assert main(["campaign", str(first), str(second), *given]) == 0
    assert all(f">{name}</text>" in figure.read_text() for name in ("One world: x", "Another: x"))
    assert main(["campaign", str(first), *given]) == 0
    assert ">x</text>" in figure.read_text()
