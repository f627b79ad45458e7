"""What is kept of a campaign's runs, and the page that comes of it."""

import json

import pytest
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign
from ends import code_of

from recipe.hint.main_report import main
from recipe.run.errors import ConfigError, DataError
from recipe.study.report.campaign_folder import keep_results, read_results_of
from recipe.study.report.campaign_page import results_page


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


def test_what_was_kept_of_another_run_or_is_damaged_is_refused(tmp_path):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    kept = tmp_path / "kept"
    keep_results(root, kept)
    first, second = kept / "x/seed-1.json", kept / "x/seed-2.json"
    whole = second.read_text()
    second.write_text(first.read_text())
    with pytest.raises(ConfigError, match="x/seed-2.json was made with .*hint.seed=1"):
        read_results_of(kept)
    with pytest.raises(ConfigError, match="x/seed-2.json was made with .*hint.seed=1"):
        keep_results(root, kept)
    second.write_text(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="x/seed-2.json cannot be read .*; delete it"):
        read_results_of(kept)
    second.write_text(whole.replace('"means"', '"mean"'))
    with pytest.raises(DataError, match="x/seed-2.json is damaged: means: Field required"):
        read_results_of(kept)


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


WRONG_KEPT = {
    "a share above 1": lambda kept: kept["means"]["toy"]["accuracy"].update(a=1.7),
    "a text": lambda kept: kept["means"]["toy"]["accuracy"].update(a="1.0"),
    "a share below 0": lambda kept: kept["means"]["toy"]["accuracy"].update(a=-0.5),
    "no problem": lambda kept: kept["means"]["toy"].update(accuracy={}),
    "a list of problems": lambda kept: kept["means"]["toy"].update(accuracy=[1.0]),
    "an unknown measure": lambda kept: kept["means"]["toy"].update(luck={"a": 1.0}),
    "a source with a line in it": lambda kept: kept["means"].update({"a\n## x": {}}),
    "no means": lambda kept: kept.update(means=None),
    "K of 0": lambda kept: kept.update(num_responses=0),
    "K of true": lambda kept: kept.update(num_responses=True),
    "no sampling": lambda kept: kept.update(sampling=None),
    "no steps": lambda kept: kept["metrics"].pop("step"),
    "a step without a number": lambda kept: kept["metrics"]["step"].__setitem__(1, None),
    "no metrics": lambda kept: kept.update(metrics={}),
    "columns of other lengths": lambda kept: kept["metrics"]["step"].append(9.0),
    "a level without a number": lambda kept: _add(kept, "hint/used_level_x"),
    "a level that cannot be": lambda kept: _add(kept, "hint/used_level_3000000"),
    "a validation above 1": lambda kept: _last(kept, "val-core/toy/acc/mean@4", 7.0),
    "tokens below 0": lambda kept: _last(kept, "hint/tokens", -1.0),
}


def _last(kept, name, value):
    kept["metrics"][name][-1] = value


def _add(kept, name):
    kept["metrics"][name] = [1.0] * len(kept["metrics"]["step"])


@pytest.mark.parametrize("wrong", WRONG_KEPT)
def test_a_kept_file_that_no_run_could_have_written_is_one_line(tmp_path, capsys, wrong):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    keep_results(root, tmp_path / "kept")
    path = tmp_path / "kept/x/seed-2.json"
    kept = json.loads(path.read_text())
    WRONG_KEPT[wrong](kept)
    path.write_text(json.dumps(kept))
    assert code_of(main, ["campaign", str(tmp_path / "kept"), "-o", str(tmp_path / "page.md")]) == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"error: {path} is damaged: ") and line.endswith("keep the run again")


def test_prompts_of_a_step_without_any_are_no_division_by_zero(tmp_path):
    root = write_campaign(tmp_path, {"x": {1: ONE, 2: ONE}})
    with open(root / "x/seed-1/metrics.jsonl", "a") as metrics:
        metrics.write('{"step": 3, "hint/prompts": 0, "hint/used_level_1": 1}\n')
    assert "Levels over the quarters" in results_page([read_results_of(root)])


def test_a_run_that_was_kept_gives_way_only_when_asked(tmp_path, capsys):
    root = write_campaign(tmp_path / "runs", {"x": {1: ONE, 2: ONE}})
    keep_results(root, tmp_path / "kept")
    keep_results(root, tmp_path / "kept")  # the same numbers
    again = write_campaign(tmp_path / "again", {"x": {1: ONE, 2: ONE | {"c": "++++"}}})
    command = ["keep", str(again), "-o", str(tmp_path / "kept")]
    assert code_of(main, command) == 2
    assert "x/seed-2.json was kept with other numbers" in capsys.readouterr().err
    assert main([*command, "--replace"]) == 0
    assert read_results_of(tmp_path / "kept").seeds["x"][2].means["toy"]["accuracy"]["c"] == 1.0


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
    assert not (kept / "lost.json").exists()
