"""What is kept of a campaign's runs, and the page that comes of it."""

import json

import pytest
from campaign_runs import CONVERSATIONS, ONE, claims, write_campaign

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.main_report import main
from recipe.hint.report.campaign import keep_results, read_results_of
from recipe.hint.report.campaign_page import results_page


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
    with pytest.raises(DataError, match="x/seed-2.json is damaged: KeyError: 'means'"):
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
