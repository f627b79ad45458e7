"""What is said of a campaign's runs: estimates, claims, the page, and what is kept."""

import json
import shutil

import pytest
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign, write_evaluation
from response_rows import rows

from recipe.run.errors import ConfigError, DataError
from recipe.study.campaign_results import read_results_of, results_page
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


def test_a_bound_holds_where_the_interval_of_every_seed_is_on_its_side(tmp_path):
    # +1/2 on all: 1 - 0.025 ** (1 / 40) = 8.8 % of other problems may differ, by -1.5 or +0.5.
    # So 0.37 to 0.54.
    asked = claims({"at_least": 0.35}, {"at_least": 0.8}, {"below": 0.6})
    root = write_campaign(tmp_path, {"x": {1: MANY, 2: SOME}}, claims=asked)
    # 0.6 is above all of `SOME` and below all of `MANY`.
    assert [verdict(root, each) for each in range(3)] == ["holds", "fails", "fails"]


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
    assert "for all 2 claims" in page


def test_the_page_tells_what_became_of_a_run_and_what_sets_evaluations_apart(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}, "y": {1: ONE, 2: ONE}})
    stored = root / "y/seed-2/evaluation/results.json"
    stored.write_text(stored.read_text().replace('"temperature": 1.0', '"temperature": 0.0'))
    ended = root / "x/seed-2"
    (ended / "logs").mkdir(parents=True)
    shutil.copy(root / "x/seed-1/metrics.jsonl", ended)
    (ended / "logs/fatal.json").write_text('{"error": "the loss is nan\\nat step 2"}')
    page = results_page([read_results_of(root)])
    assert "- **Not finished**: x/seed-2 at step 2 the loss is nan at step 2\n" in page
    assert "- Drawn: K 4, temperature 1.0; K 4, temperature 0.0\n" in page


def test_the_page_shows_failed_claims_in_bold_and_runs_that_are_missing(tmp_path):
    asked = claims({"below": -0.5}, {"at_least": 0.9})
    asked[1] |= {"measure": "acc_t2"}
    root = write_campaign(tmp_path, {"x": {1: CONVERSATIONS}}, claims=asked, seeds=[1, 2])
    page = results_page([read_results_of(root)])
    assert "| **x: delta on toy below -50.0, every seed** " in page
    assert " **fails** |" in page
    assert "| x: last turn on toy at least 90.0, every seed" in page and " not known |" in page
    assert "- **Not finished**: x/seed-2 not run" in page
    # 90 s of steps and 1,000 tokens; half of the problems at step 2.
    cost = next(line for line in page.split("### Cost")[1].split("\n") if line.startswith("| x "))
    assert [each.strip() for each in cost.split("|")[2:5]] == ["1k", "1.00", "1.5"]


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
    # No step says how many tokens it trained. The curve is a line: its mean height is 0.375.
    assert row_of(page, heading)[3:5] == ["-", "37.5 (37.5 - 37.5)"]
    for run in ("y/seed-1", "y/seed-2", "x/seed-1", "x/seed-2"):
        set_metrics(
            root,
            run,
            lambda rows_of_run: [
                each | ({"perf/total_num_tokens": 1000} if "hint/tokens" in each else {})
                for each in rows_of_run
            ],
        )
    # Both of y's steps sample 500 and train 1,000: 3,000, which are 3/4 of seed 2's 4,000 in x,
    # where 0.4375 were right; with seed 1 it is 0.5.
    page = results_page([read_results_of(root)])
    assert row_of(page, heading)[2:4] == ["43.8 (2)", "46.9 (2)"]


def test_responses_that_the_verifier_failed_on_are_counted_and_told(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}}, seeds=[1])
    run = root / "x/seed-1"
    shutil.rmtree(run / "evaluation")
    write_evaluation(run, rows("toy", a="+++t", b="++--", c="tttt"), ["a", "b", "c"])
    result = read_results_of(root)
    # They count as wrong: (3/4 + 1/2 + 0) / 3.
    assert result.estimate("x", "toy", "accuracy").value == pytest.approx(1.25 / 3)
    assert "x/seed-1 5 of toy" in results_page([result])


def test_what_is_not_of_the_campaign_is_refused(tmp_path):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    shutil.rmtree(root / "x/seed-2")
    shutil.copytree(root / "x/seed-1", root / "x/seed-2")  # one seed twice
    with pytest.raises(ConfigError, match="x/seed-2 was made with .*hint.seed=1.*hint.seed=2"):
        read_results_of(root)
    arms = {"x": {1: ONE}, "y": {1: {f"other {name}": each for name, each in ONE.items()}}}
    with pytest.raises(DataError, match="different problems of toy"):
        read_results_of(write_campaign(tmp_path / "other", arms))


DAMAGE = {
    "campaign.json": ("[", "campaign.json is damaged"),
    "machine.json": ("[1]", "machine.json is damaged"),
    "evaluation/results.json": ("{}", "results.json is damaged"),
    "evaluation/samples/toy.jsonl": ("[]\n", "toy.jsonl is damaged"),
    "evaluation/samples/toy.jsonl, empty": ("", "0 problems have responses, of 3"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_of_a_run_is_named(tmp_path, name):
    root = write_campaign(tmp_path / "runs", {"x": {1: CONVERSATIONS}})
    text, told = DAMAGE[name]
    (root / "x/seed-1" / name.partition(",")[0]).write_text(text)
    with pytest.raises(DataError, match=told):
        read_results_of(root)


def test_what_was_kept_of_runs_gives_the_same_page(tmp_path, capsys):
    asked = claims({"below": -0.5}, {"at_least": 0.9})
    arms = {"x": {1: CONVERSATIONS, 2: CONVERSATIONS}, "y": {1: CONVERSATIONS}}
    root = write_campaign(tmp_path / "runs", arms, claims=asked)
    machine = {"machine": {"driver": "two cores"}, "version": {"python": "3.11"}}
    (root / "x/seed-1/machine.json").write_text(json.dumps(machine))
    kept = tmp_path / "kept"
    main(["keep", str(root), "-o", str(kept)])
    assert capsys.readouterr().out == f"{kept}: 3 runs\n"
    page = results_page([read_results_of(root)])
    assert "two cores" in page and "y/seed-2" in page
    assert results_page([read_results_of(kept)]) == page
