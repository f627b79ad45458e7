"""The project's own page of results, and what the documentation says of it."""

import itertools
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from recipe.study.campaign import CAMPAIGN_FILE, read_campaign
from recipe.study.campaign_results import read_results_of, results_page
from recipe.study.tables import percent

EVIDENCE = Path("docs/evidence")
# A difference or a share with its interval: +8.1 (-8.7 to 24.9), or with a comma.
INTERVAL = re.compile(r"([+-]?\d+\.\d)(?:,| \()\s*([+-]?\d+\.\d)\s+(?:to|-)\s+([+-]?\d+\.\d)")
# By other estimators: at equal tokens, of one seed, and with unpaired seeds.
OTHERWISE = {
    *("5.0 -15.2 25.2", "24.7 13.2 36.2", "39.7 13.0 66.3", "47.6 30.7 64.6", "10.9 6.9 15.0"),
    *("7.3 0.9 13.7", "8.8 2.4 15.2", "7.3 0.8 13.8", "0.9 -13.0 14.9", "1.9 -17.7 21.5"),
}


# Arms whose method or option is no more, and one that has another name in new runs.
GONE = {"rl-zvp", "seele", "prefix-rl", "sage-unanimous", "sage-jump", "sage-jump-probe"}
RENAMED = {"teacher": "offline-more"}


@pytest.mark.parametrize(("name", "is_foreign"), [("results", False), ("foreign_results", True)])
def test_it_is_what_the_kept_runs_give(name, is_foreign):
    """``hint report campaign docs/evidence/... -o docs/lab/NAME.md`` changes nothing.

    The claims of the foreign world are on a page of their own: p is corrected for those of a page.
    """
    campaigns = sorted(path.parent for path in EVIDENCE.glob(f"*/{CAMPAIGN_FILE}"))
    some = [each for each in campaigns if (each.name == "foreign") == is_foreign]
    page = results_page([read_results_of(each) for each in some])
    assert Path(f"docs/lab/{name}.md").read_text(encoding="utf-8") == page


def test_the_figure_is_drawn_from_the_kept_runs():
    """``scripts/figure.py docs/evidence/foreign docs/figures/foreign.svg`` changes nothing."""
    drawn = runpy.run_path("scripts/figure.py")["figure"](read_results_of(EVIDENCE / "foreign"))
    assert Path("docs/figures/foreign.svg").read_text(encoding="utf-8") == drawn


def test_each_campaign_is_the_one_that_can_be_made():
    """A claim, an arm or a setting that was changed afterwards would be another campaign."""
    for path in EVIDENCE.glob(f"*/{CAMPAIGN_FILE}"):
        ran = read_campaign(path)
        can_run = read_campaign(Path("configs/campaign") / f"{path.parent.name}.yaml")
        renamed = {} if path.parent.name == "foreign" else RENAMED
        arms = {name: arm for name, arm in ran.arms.items() if name not in GONE}
        claims = tuple(each for each in ran.claims if {each.arm, each.more_than} <= {*arms, None})
        arms = {renamed.get(name, name): arm for name, arm in arms.items()}
        claims = tuple(
            replace(each, more_than=renamed.get(each.more_than, each.more_than)) for each in claims
        )
        assert replace(ran, arms=arms, claims=claims) == can_run


def test_the_readmes_table_says_what_the_page_says():
    """Its columns: seeds, hard, easy, tokens as a multiple of grpo's, hard at grpo's tokens."""
    page = Path("docs/lab/foreign_results.md").read_text(encoding="utf-8")
    rows = cells_of(page, "Cost")
    hard, easy = (cells_of(page, f"Held-out problems, foreign/{kind}") for kind in ("hard", "easy"))
    curves = cells_of(page, "Accuracy in training's own validations, foreign/hard")
    readme = Path("README.md").read_text(encoding="utf-8")
    told = cells_of(readme, "Results", "| per cent solved after 40 steps")
    assert list(told) == ["`grpo`", "`sage-light`", "`sage`"]
    for name, cells in told.items():
        arm = name.strip("`")
        assert hard[arm][0] == easy[arm][0]
        assert cells == [*hard[arm], easy[arm][1], rows[arm][1], curves[arm][-3]]


def cells_of(text, heading, table="| arm"):
    """The rows of the first table under a heading, by their first cell."""
    part = text.split(f"# {heading}\n", 1)[1].split(table, 1)[1]
    rows = part.split("\n\n", 1)[0].splitlines()[2:]
    split = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {first: rest for first, *rest in split}


@pytest.mark.parametrize(("where", "at_least"), [("lab/papers", 31), ("results", 0)])
def test_every_interval_that_a_page_gives_is_one_of_the_kept_runs(where, at_least):
    """Of some arm, or of some two; a difference may be told with either sign."""
    known = set()
    for path in EVIDENCE.glob(f"*/{CAMPAIGN_FILE}"):
        result = read_results_of(path.parent)
        for source, name in itertools.product(result.sources, ("accuracy", "acc_t1", "acc_t2")):
            if name not in result.measures(source):
                continue
            known |= {result.estimate(arm, source, name) for arm in result.seeds}
            known |= {
                result.estimate(arms[0], source, name, arms[1])
                for arms in itertools.permutations(result.seeds, 2)
                if result.common_seeds(*arms)
            }
    said = {" ".join(percent(each) for each in found) for found in known if found}
    page = Path(f"docs/{where}.md").read_text(encoding="utf-8")
    told = [" ".join(each.lstrip("+") for each in found) for found in INTERVAL.findall(page)]
    assert len(told) >= at_least
    assert [each for each in told if each not in said | OTHERWISE] == []
