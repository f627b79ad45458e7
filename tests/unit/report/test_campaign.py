"""What is said of a campaign's runs."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign
from response_rows import rows, write_rows

from recipe.hint.campaign import Claim
from recipe.hint.errors import ConfigError, DataError
from recipe.hint.evaluation.estimators import Estimate
from recipe.hint.evaluation.results import write_results
from recipe.hint.main_report import main
from recipe.hint.problems.columns import read_problems
from recipe.hint.report.campaign import read_results_of, side_of
from recipe.hint.report.campaign_page import results_page
from recipe.hint.tiny.two_turn.task import response

TWO_TURN = Path("data/two_turn/val_hard.parquet").absolute()


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
    found = read_results_of(root).difference("y", "x", "toy", "accuracy")
    assert found.value == pytest.approx(0.25)
    swapped = read_results_of(root).difference("x", "y", "toy", "accuracy")
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
        shutil.rmtree(root / f"x/seed-{seed}")
        (root / "campaign.yaml").write_text(
            (root / "campaign.yaml").read_text().replace("- 2\n", "").replace("- 3\n", "")
        )
    assert [verdict(root, each) for each in range(4)] == ["not known"] * 4  # one seed


def test_an_end_that_is_shown_as_the_bound_is_taken_as_the_bound(tmp_path):
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


def test_levels_are_shares_of_the_prompts_in_each_quarter(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}, "y": {1: ONE}}, seeds=[1])
    # Eight steps of 4 prompts: from the third on one prompt at level 1, from the seventh on two.
    hinted = [0, 0, 1, 1, 1, 1, 2, 2]
    rows_of_x = [
        {
            "step": step,
            "hint/prompts": 4,
            "hint/used_no_hint": 4 - count,
            "hint/used_level_1": count,
        }
        for step, count in enumerate(hinted, start=1)
    ]
    path = root / "x/seed-1/metrics.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows_of_x))
    table = results_page([read_results_of(root)]).split("### Levels over the quarters")[1]
    cells = [each.strip() for each in table.split("\n")[4].split("|")[1:-1]]
    assert cells == ["x", "100 / 0", "75 / 25", "75 / 25", "50 / 50"]
    assert not table.split("\n")[5].strip()  # y has no levels


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


def test_a_comparison_of_responses_that_were_drawn_differently_is_not_known(tmp_path):
    most, none = ({f"p{n}": letters for n in range(40)} for letters in ("++++", "----"))
    arms = {"x": dict.fromkeys((1, 2, 3), most), "y": dict.fromkeys((1, 2, 3), none)}
    claim = {"arm": "x", "source": "toy", "measure": "accuracy", "more_than": "y"}
    root = write_campaign(tmp_path, arms, seeds=[1, 2, 3], claims=[claim])
    assert verdict(root, 0) == "holds"
    for path in root.glob("y/*/evaluation/results.json"):
        path.write_text(path.read_text().replace('"temperature": 1.0', '"temperature": 0.1'))
    assert verdict(root, 0) == "not known"


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


@pytest.mark.parametrize("permille", range(0, 1001, 7))
@pytest.mark.parametrize("bound", ["at_least", "below"])
def test_a_bound_is_compared_as_it_is_shown(bound, permille):
    share = permille / 1000
    claim = Claim("x", "toy", "accuracy", **{bound: share})
    found = Estimate(share, share, share)
    assert side_of(claim, found) == ("holds" if bound == "at_least" else "fails")


def test_a_seed_without_the_measure_leaves_a_claim_unknown(tmp_path):
    many = {f"p{number}": "-+ -+" for number in range(40)}
    root = write_campaign(
        tmp_path, {"x": {1: many, 2: dict.fromkeys(many, "++")}}, claims=claims({"at_least": 0.3})
    )
    assert verdict(root, 0) == "not known"  # seed 2 has responses of one turn


def test_a_folder_that_holds_another_run_is_refused(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}})
    shutil.rmtree(root / "x/seed-2")
    shutil.copytree(root / "x/seed-1", root / "x/seed-2")  # one seed twice
    with pytest.raises(ConfigError, match="x/seed-2 was made with .*hint.seed=1.*hint.seed=2"):
        read_results_of(root)
    (root / "x/seed-2/campaign.json").unlink()
    with pytest.raises(ConfigError, match="x/seed-2 has results and no campaign.json"):
        read_results_of(root)


def test_arms_on_different_problems_are_not_compared(tmp_path):
    arms = {"x": {1: ONE}, "y": {1: {f"other {name}": each for name, each in ONE.items()}}}
    result = read_results_of(write_campaign(tmp_path, arms))
    with pytest.raises(DataError, match="x and y were evaluated on different problems of toy"):
        result.difference("x", "y", "toy", "accuracy")


def test_a_part_of_an_evaluation_is_refused(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE}})
    path = next((root / "x/seed-1/evaluation/samples").iterdir())
    path.write_text("".join(line for line in path.open() if '"c"' not in line))
    with pytest.raises(DataError, match="responses to 2 problems, results.json counts 3"):
        read_results_of(root)


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
    assert "- Drawn (x/seed-1, y/seed-1): K = 4 each (temperature 1.0)\n" in page
    assert "- Drawn (y/seed-2): K = 4 each (temperature 0.0)\n" in page
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
    assert page.split("groups with signal, %")[1].split("\n")[2].split("|")[2].strip() == "75"


def test_runs_on_different_problems_are_not_put_together(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: {"a": "++++"}}})
    with pytest.raises(
        DataError, match="seeds 1 and 2 were evaluated on different problems of toy"
    ):
        results_page([read_results_of(root)])


def test_a_folder_without_a_finished_run_says_what_to_do(tmp_path, capsys):
    write_campaign(tmp_path, {"x": {}})
    assert main(["campaign", str(tmp_path), "-o", str(tmp_path / "page.md")]) == 2
    assert "has no finished run; make them with main_campaign.py" in capsys.readouterr().err


def test_the_command_writes_the_page(tmp_path, capsys):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    assert main(["campaign", str(root), "-o", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text().startswith("# Results\n")
    assert capsys.readouterr().out.endswith("page.md: 1 campaigns, 0 runs missing\n")


def test_the_figure_has_a_line_for_each_arm_that_was_asked_for(tmp_path, capsys):
    root = write_campaign(tmp_path / "runs", {name: {1: ONE, 2: ONE} for name in "xyz"})
    figure = tmp_path / "figure.svg"
    given = ["campaign", str(root), "-o", str(tmp_path / "page.md"), "--source", "toy"]
    given += ["--figure", str(figure), "--arm", "x"]
    assert main([*given, "--arm", "z"]) == 0
    legend = [name for name in "xyz" if f">{name}</text>" in figure.read_text()]
    assert legend == ["x", "z"]
    assert main([*given, "--arm", "w"]) == 2
    assert "--arm w has no finished run; choose from x, y, z" in capsys.readouterr().err


def test_work_is_right_where_a_first_response_ends_in_the_answer(tmp_path):
    problem = read_problems(TWO_TURN)[0]
    right, wrong = int(problem.answer), (int(problem.answer) + 1) % 10
    write_campaign(tmp_path, {"x": {1: {"p": "-- -- -- --"}}}, seeds=[1])
    folder = tmp_path / "x" / "seed-1"
    lines = rows("two_turn/hard", **{problem.id: "----"})
    # Three of four first responses work out the answer, whatever they box.
    for line, worked in zip(lines, (right, right, wrong, right), strict=True):
        first = {"role": "assistant", "content": response(0, [1, 2, 3, worked])}
        line["conversation"] = [{"role": "user", "content": problem.text}, first]
    shutil.rmtree(folder / "evaluation")
    write_rows(folder / "evaluation", "two_turn__hard", lines)
    write_results(
        folder / "evaluation",
        {"two_turn/hard": [problem.id]},
        model=str(folder / "model"),
        sampling={},
        num_responses=4,
        wall_s={"two_turn/hard": 1.0},
    )
    files = {TWO_TURN.name: hashlib.sha256(TWO_TURN.read_bytes()).hexdigest()}
    (folder / "evaluation/settings.json").write_text(json.dumps({"files": files}))
    config = {"trainer": {"method": "score"}, "data": {"val_files": [str(TWO_TURN)]}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))

    def work():
        return read_results_of(tmp_path).estimate("x", "two_turn/hard", "work")

    assert work().value == 0.75
    # Where the run's own file is gone, the package's is the same one.
    config["data"]["val_files"] = [str(tmp_path / "moved.parquet")]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert work().value == 0.75
    # Other problems than those of the evaluation say nothing of it.
    files[TWO_TURN.name] = "0" * 64
    (folder / "evaluation/settings.json").write_text(json.dumps({"files": files}))
    assert work() is None
