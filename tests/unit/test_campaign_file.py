"""A campaign's file."""

from pathlib import Path

import pytest
import yaml

from recipe.run.errors import ConfigError
from recipe.study.campaign import read_campaign

FILES = sorted(Path("configs/campaign").glob("*.yaml"))
PLAIN = {"title": "t", "arms": {"a": {}, "b": {"settings": ["x=1"]}}}


def read(tmp_path, **changes):
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump(PLAIN | changes))
    return read_campaign(path)


def test_runs_are_arms_times_seeds_the_first_seeds_first(tmp_path):
    arms = {"a": {}, "b": {"seeds": [5]}}
    found = read(tmp_path, arms=arms, seeds=[1, 2]).runs()
    assert [run.name for run in found] == ["a/seed-1", "b/seed-5", "a/seed-2"]


def test_an_arms_settings_come_after_those_of_the_campaign_and_its_seeds_last(tmp_path):
    arms = {"a": {"settings": ["n=2"], "evaluation": ["k=2"]}}
    run = read(tmp_path, arms=arms, settings=["n=1"], evaluation=["k=1"], seeds=[3]).runs()[0]
    assert run.settings == ("n=1", "n=2", "hint.seed=3", "data.seed=3")
    assert run.evaluation == ("k=1", "k=2")


CLAIM = {"arm": "a", "source": "s", "measure": "delta"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": {}}, "name at least one arm"),
        ({"arms": {"../a": {}}}, "names a folder"),
        ({"arms": {"a": {"setting": []}}}, "setting is not a setting.*nearest: settings"),
        ({"claims": [CLAIM | {"belov": 0.1}]}, "belov is not a setting.*nearest: below"),
        ({"seeds": []}, "give each of them once"),
        ({"seeds": [1, 1]}, "give each of them once"),
        ({"seeds": [-1]}, "seeds of a are .-1.; give 0 to 2147483647"),
        ({"seeds": [10**20]}, "give 0 to 2147483647"),
        ({"arms": {"a" * 65: {}}}, "names a folder; .* at most 64"),
        ({"arms": {"ä": {}}}, "names a folder"),
        ({"arms": {"a": {}, "A": {}}}, "A and a differ in their case alone, .*; rename one"),
        ({"settings": ["hint.seed =3"]}, "which the campaign gives each run"),
        ({"budgets": [{"arm": "a", "tokens_of": "a", "at_most": 1.0}]}, "compares a with itself"),
        ({"arms": {"a": {"settings": ["hint.seed=2"]}}}, "which the campaign gives each run"),
        ({"settings": ["n"]}, "must be NAME=VALUE"),
        ({"reference": "c"}, "reference: 'c' is not an arm; choose from a, b"),
        ({"claims": [CLAIM]}, "has 0 of at_least, below and more_than"),
        ({"claims": [CLAIM | {"below": 0.1, "at_least": 0.2}]}, "has 2 of"),
        ({"claims": [CLAIM | {"more_than": "c"}]}, r"claims.0.: 'c' is not an arm"),
        ({"claims": [CLAIM | {"below": 9.0}]}, "a claim about a on s has delta at 9; give a share"),
        (
            {"budgets": [{"arm": "a", "tokens_of": "c", "at_most": 1.0}]},
            r"budgets.0.: 'c' is not an arm",
        ),
    ],
)
def test_a_wrong_file_is_an_error_that_says_what_to_do(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=f"^{tmp_path}/campaign.yaml: .*{message}"):
        read(tmp_path, **changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: t\narms: {a: {}, a: {settings: [x=1]}}", "the key 'a' appears twice"),
        ("title: t\narms: {a: {}}\nclaims: []\nclaims: []", "the key 'claims' appears twice"),
        ("title: t\narms: {on: {}}", "the key True is not a string; quote it"),
        ("title: t\narms: {null: {}}", "the key None is not a string"),
        ("title: t\narms: {2020-01-01: {}}", "is not a string; quote it"),
        ("title: t\narms: {a: {}}\nreference: 2020-01-01", "unsupported value"),
        ("title: t\narms: {a: {}}\nseeds: [2020-01-01]", "unsupported value"),
        ("title: !!binary aGk=\narms: {a: {}}", "unsupported value"),
        ("title: t\narms: {a: {}}\nseeds: !!set {a, b}", "unsupported value"),
        ("title: t\narms: &x {a: *x}", "nested|recursion|circular|Circular"),
        ("title: t", "arms is missing; give it"),
        ("arms: {a: {settings: x=1}}\ntitle: t", "settings='x=1' must be a list"),
    ],
)
def test_yaml_that_says_what_no_campaign_can_is_one_error(tmp_path, text, message):
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_campaign(path)


def test_a_file_that_is_no_mapping_is_an_error(tmp_path):
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(ConfigError, match="holds a list, expected a campaign"):
        read_campaign(tmp_path / "list.yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_campaigns_of_the_repository_can_be_read(path):
    found = read_campaign(path)
    assert len(found.runs()) >= len(found.arms)
