"""What is said of a campaign's runs."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign
from ends import code_of
from response_rows import rows, write_rows

from recipe.hint.main_report import main
from recipe.problems.columns import read_problems
from recipe.run.errors import ConfigError, DataError
from recipe.study.report.campaign_folder import read_results_of
from recipe.study.report.campaign_page import results_page
from recipe.study.results import write_results
from recipe.study.work import work_right
from recipe.worlds.two_turn import response

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
    with pytest.raises(DataError, match="has responses to .* problems, results.json counts"):
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


def row_of(page, heading, arm="x"):
    lines = page.split(f"### {heading}")[1].split("\n")
    cells = next(line for line in lines if line.startswith(f"| {arm} "))
    return [each.strip() for each in cells.split("|")[2:-1]]


def set_metrics(root, run, change):
    path = root / run / "metrics.jsonl"
    rows_of_run = [json.loads(line) for line in path.open()]
    path.write_text("".join(json.dumps(each) + "\n" for each in change(rows_of_run)))


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


def test_minutes_are_of_the_seeds_whose_steps_all_have_a_time(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}, "y": {1: ONE, 2: ONE}})
    both = row_of(results_page([read_results_of(root)]), "Cost")[2]

    def without_a_time(rows_of_run):
        return [{k: v for k, v in each.items() if k != "timing_s/step"} for each in rows_of_run]

    set_metrics(root, "x/seed-2", without_a_time)
    page = results_page([read_results_of(root)])
    assert row_of(page, "Cost")[2] == f"{both} (1)"


def test_nothing_is_said_of_fewer_tokens_than_the_first_validation_cost(tmp_path):
    # y samples 1,000 tokens; x has 2,000 before it validates at all.
    root = write_campaign(tmp_path, {"y": {1: ONE}, "x": {1: ONE}}, reference="y")
    set_metrics(
        root,
        "x/seed-1",
        lambda rows_of_run: [
            each | ({"hint/rollout_tokens": 2000} if "hint/tokens" in each else {})
            for each in rows_of_run[1:]
        ],
    )
    heading = "Accuracy in training's own validations, toy"
    assert row_of(results_page([read_results_of(root)]), heading)[-2] == "-"


def test_a_validation_that_a_seed_lacks_is_told(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}})
    set_metrics(
        root,
        "x/seed-2",
        lambda rows_of_run: [
            {name: value for name, value in each.items() if each["step"] < 2 or "val" not in name}
            for each in rows_of_run
        ],
    )
    found = row_of(
        results_page([read_results_of(root)]), "Accuracy in training's own validations, toy"
    )
    assert found[:3] == ["25.0", "50.0 (1)", "50.0 (1)"]


def test_runs_on_different_problems_are_not_put_together(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: {"a": "++++"}}})
    with pytest.raises(
        DataError, match="seeds 1 and 2 were evaluated on different problems of toy"
    ):
        results_page([read_results_of(root)])


def test_a_folder_without_a_finished_run_says_what_to_do(tmp_path, capsys):
    write_campaign(tmp_path, {"x": {}})
    assert code_of(main, ["campaign", str(tmp_path), "-o", str(tmp_path / "page.md")]) == 2
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
    assert code_of(main, [*given, "--arm", "w"]) == 2
    assert "--arm w has no finished run; choose from x, y, z" in capsys.readouterr().err


def test_an_arm_of_another_campaign_and_other_problems_has_no_part_in_the_figure(tmp_path):
    """Both have an arm ``x``; those of the second never met ``toy``."""
    first = write_campaign(tmp_path / "first", {"x": {1: ONE, 2: ONE}})
    second = write_campaign(tmp_path / "second", {"x": {1: ONE, 2: ONE}})
    for path in second.rglob("metrics.jsonl"):
        path.write_text(path.read_text().replace("val-core/toy/", "val-core/other/"))
    figures = []
    for number, folders in enumerate(([first], [first, second])):
        page, figure = tmp_path / f"{number}.md", tmp_path / f"{number}.svg"
        given = ["-o", str(page), "--source", "toy", "--figure", str(figure), "--arm", "x"]
        assert main(["campaign", *map(str, folders), *given]) == 0
        figures.append(figure.read_text())
    assert figures[0] == figures[1]


def test_arms_of_one_name_on_one_source_stay_apart_in_the_figure(tmp_path):
    first = write_campaign(tmp_path / "first", {"x": {1: ONE, 2: ONE}}, title="One world")
    second = write_campaign(tmp_path / "second", {"x": {1: ONE, 2: ONE}}, title="Another")
    figure = tmp_path / "figure.svg"
    given = ["-o", str(tmp_path / "page.md"), "--source", "toy", "--figure", str(figure)]
    assert main(["campaign", str(first), str(second), *given]) == 0
    assert all(f">{name}</text>" in figure.read_text() for name in ("One world: x", "Another: x"))
    assert main(["campaign", str(first), *given]) == 0
    assert ">x</text>" in figure.read_text()


def test_arms_that_trained_for_unequal_steps_are_not_compared(tmp_path):
    """Each arm's seeds agree: 2 steps of x, 1 of y."""
    many = {f"p{number}": "++++" for number in range(40)}
    none = dict.fromkeys(many, "----")
    claim = {"arm": "x", "source": "toy", "measure": "accuracy", "more_than": "y"}
    root = write_campaign(
        tmp_path,
        {"x": dict.fromkeys((1, 2, 3), many), "y": dict.fromkeys((1, 2, 3), none)},
        seeds=[1, 2, 3],
        claims=[claim],
    )
    result = read_results_of(root)
    assert result.verdict(result.campaign.claims[0])[1] == "holds"
    for path in root.glob("y/*/metrics.jsonl"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    result = read_results_of(root)
    assert result.verdict(result.campaign.claims[0])[1] == "not known"


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
        return read_results_of(tmp_path, {"work": work_right}).estimate(
            "x", "two_turn/hard", "work"
        )

    assert work().value == 0.75
    # Where the run's own file is gone, the package's is the same one.
    config["data"]["val_files"] = [str(tmp_path / "moved.parquet")]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert work().value == 0.75
    # Other problems than those of the evaluation say nothing of it.
    files[TWO_TURN.name] = "0" * 64
    (folder / "evaluation/settings.json").write_text(json.dumps({"files": files}))
    assert work() is None
