"""What is said of a campaign's runs."""

import json
from pathlib import Path

import pytest
import yaml
from response_rows import rows, write_rows

from recipe.hint.errors import DataError
from recipe.hint.evaluation.results import write_results
from recipe.hint.main_report import main
from recipe.hint.problems.columns import read_problems
from recipe.hint.report.campaign import read_results_of
from recipe.hint.report.campaign_page import results_page
from recipe.hint.tiny.two_turn.task import response

TWO_TURN = Path("data/two_turn/val_hard.parquet").absolute()

ONE = {"a": "++++", "b": "++--", "c": "----"}  # 1, 1/2, 0


def write_campaign(root, arms, **changes):
    """``arms``: arm -> seed -> problem -> ``+`` and ``-``; for two turns a pair such as ``-+``."""
    node = {"title": "A campaign", "arms": {name: {} for name in arms}, "seeds": [1, 2]} | changes
    root.mkdir(exist_ok=True)
    (root / "campaign.yaml").write_text(yaml.safe_dump(node))
    for arm, by_seed in arms.items():
        for seed, verdicts in by_seed.items():
            write_run(root / arm / f"seed-{seed}", verdicts)
    return root


def write_run(folder, verdicts):
    lines = rows(
        "toy", **{problem: "".join(two_turns(each)[1]) for problem, each in verdicts.items()}
    )
    firsts = [first for each in verdicts.values() for first in two_turns(each)[0]]
    for line, first in zip(lines, firsts, strict=True):
        if first:
            before, after = float(first == "+"), line["score"]
            line["facts"] = {
                "acc_t1": before,
                "acc_t2": after,
                "delta": after - before,
                "wrong_to_right": float(after > before),
                "right_to_wrong": float(after < before),
                "unchanged": float(after == before),
                "overlap": 0.0,
            }
    write_rows(folder / "evaluation", "toy", lines)
    write_results(
        folder / "evaluation",
        {"toy": list(verdicts)},
        model="m",
        sampling={"temperature": 1.0},
        num_responses=len(lines) // len(verdicts),
        wall_s={"toy": 1.0},
    )
    steps = [
        {"step": 0, "val-core/toy/acc/mean@4": 0.25},
        {"step": 1, "hint/prompts": 2, "timing_s/step": 60.0, "hint/rollout_tokens": 500},
        {"step": 2, "hint/prompts": 2, "timing_s/step": 30.0, "hint/rollout_tokens": 500}
        | {"hint/zero_signal_after": 0.25, "val-core/toy/acc/mean@4": 0.5},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in steps))
    (folder / "config.yaml").write_text("trainer: {method: grpo}\n")


def two_turns(letters):
    """``"-+ ++"`` is two conversations, ``"-+"`` without a blank behind it two responses."""
    if " " not in letters:
        return [""] * len(letters), list(letters)
    pairs = letters.split()
    return [first for first, _ in pairs], [last for _, last in pairs]


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


CONVERSATIONS = {"a": "-+ -+", "b": "-+ ++", "c": "-+ --"}  # changes 1, 1/2, 1/2


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


def claims(*bounds):
    return [{"arm": "x", "source": "toy", "measure": "delta"} | each for each in bounds]


def test_a_bound_holds_where_the_interval_of_every_seed_is_on_its_side(tmp_path):
    many = {f"p{number}": "-+ -+" for number in range(40)}  # +1 on 40 problems
    # +1/2 on all: 1 - 0.025 ** (1 / 40) = 8.8 % of other problems may differ, by -1.5 or +0.5.
    # So 0.37 to 0.54.
    some = {f"p{number}": "-+ --" for number in range(40)}
    asked = claims({"at_least": 0.35}, {"at_least": 0.8}, {"below": 0.6})
    root = write_campaign(tmp_path, {"x": {1: many, 2: some}}, claims=asked)
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
    root = write_campaign(
        tmp_path, {name: dict.fromkeys((1, 2), each) for name, each in arms.items()}, claims=asked
    )
    assert [verdict(root, each) for each in range(2)] == ["holds", "fails"]


def test_the_page_shows_failed_claims_in_bold_and_runs_that_are_missing(tmp_path):
    asked = claims({"at_least": 0.9})
    root = write_campaign(tmp_path, {"x": {1: CONVERSATIONS}}, claims=asked)
    page = results_page([read_results_of(root)])
    assert "| **x: delta on toy at least 90.0, every seed** |" in page
    assert "| **fails** |" in page
    assert "- **Not run** (seeds): x (2)" in page
    # 90 s of steps and 1,000 tokens; half of the problems at step 2.
    assert "| x   |           1k |              1.5 |" in page
    assert "step 2, 1.5 min (1 of 1)" in page
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


def test_work_is_right_where_a_first_response_ends_in_the_answer(tmp_path):
    problem = read_problems(TWO_TURN)[0]
    right, wrong = int(problem.answer), (int(problem.answer) + 1) % 10
    write_campaign(tmp_path, {"x": {}}, seeds=[1])
    folder = tmp_path / "x" / "seed-1"
    write_run(folder, {"p": "-- -- -- --"})
    lines = rows("two_turn/hard", **{problem.id: "----"})
    # Three of four first responses work out the answer, whatever they box.
    for line, worked in zip(lines, (right, right, wrong, right), strict=True):
        first = {"role": "assistant", "content": response(0, [1, 2, 3, worked])}
        line["conversation"] = [{"role": "user", "content": problem.text}, first]
    (folder / "evaluation" / "samples" / "toy.jsonl").unlink()
    write_rows(folder / "evaluation", "two_turn__hard", lines)
    config = {"trainer": {"method": "score"}, "data": {"val_files": [str(TWO_TURN)]}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    result = read_results_of(tmp_path)
    assert result.estimate("x", "two_turn/hard", "work").value == 0.75
    # Without the problems' file there is nothing to compare with, and no such column.
    config["data"]["val_files"] = [str(tmp_path / "moved.parquet")]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert "work" not in read_results_of(tmp_path).measures("two_turn/hard")
