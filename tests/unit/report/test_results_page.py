"""The project's own page of results."""

from pathlib import Path

from recipe.hint.campaign import CAMPAIGN_FILE, read_campaign
from recipe.hint.report.campaign import read_results_of
from recipe.hint.report.campaign_page import results_page

EVIDENCE = Path("docs/evidence")


def test_it_is_what_the_kept_runs_give():
    """``main_report.py campaign docs/evidence/* -o docs/results.md`` changes nothing."""
    campaigns = sorted(path.parent for path in EVIDENCE.glob(f"*/{CAMPAIGN_FILE}"))
    assert campaigns
    page = results_page([read_results_of(each) for each in campaigns])
    assert Path("docs/results.md").read_text(encoding="utf-8") == page


def test_each_campaign_is_the_one_that_can_be_made():
    """A claim, an arm or a setting that was changed afterwards would be another campaign."""
    for path in EVIDENCE.glob(f"*/{CAMPAIGN_FILE}"):
        made_by = Path("configs/campaign") / f"{path.parent.name}.yaml"
        assert read_campaign(path) == read_campaign(made_by)
