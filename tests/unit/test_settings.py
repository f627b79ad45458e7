"""The `hint:` node: typed, complete, and equal to the YAML."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from recipe.hint.methods import every_method
from recipe.hint.methods.sage_light import SageLightSettings
from recipe.hint.settings import (
    HintSettings,
    build_method,
    method_defaults,
    read_settings,
    read_texts,
    unread_settings,
)
from recipe.run.errors import ConfigError

CONFIG = Path(__file__).parents[2] / "recipe/hint/config/hint_trainer.yaml"


def test_yaml_and_code_have_the_same_settings_and_defaults():
    node = yaml.safe_load(CONFIG.read_text())["hint"]
    general = asdict(HintSettings())
    assert general.pop("methods") == {}
    assert node == json.loads(json.dumps(general))  # a tuple is a list in YAML


def test_each_method_gives_the_configuration_its_settings_and_their_defaults():
    defaults = method_defaults()
    assert set(defaults["hint"]) == {
        *("fixed", "search", "ghpo", "scaf", "score", "score_guided", "mlmt", "archer"),
        *("luffy", "sft"),
    }
    assert defaults["trainer"] == asdict(SageLightSettings())
    for cls in every_method().values():
        if cls.settings_node.startswith("hint."):
            assert read_settings(defaults["hint"]).of(cls) == cls.settings_cls()


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ({"max_tokns": 5}, "max_tokns"),
        ({"style": "long"}, "style='long'"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"verify": {"timeout_s": 0}}, "verify.timeout_s=0"),
        ({"fixed": 3}, "fixed=3"),
        ({"prefix": {"ratios": [0.5, 1.5]}}, "prefix.ratios[1]=1.5"),
        ({"ghpo": {"accuracy_weight": 0}}, "ghpo.accuracy_weight=0"),
        ({"scaf": {"increments": 0}}, "scaf.increments=0"),
        ({"search": {"probe_n": -1}}, "search.probe_n=-1"),
        ({"score": {"beta1": -1}}, "score.beta1=-1"),
        ({"archer": {"tau": 0}}, "archer.tau=0"),
        ({"luffy": {"gamma": 0}}, "luffy.gamma=0"),
        ({"sft": {"steps": 0}}, "sft.steps=0"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(node, name):
    with pytest.raises(ConfigError) as refused:
        read_settings(node)
    assert str(refused.value).startswith(f"hint.{name} ")


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("grpo", "hint.max_tokens"),
        ("sage", "trainer.hint_accuracy_min_threshold"),
        ("sage-light", "hint.search.probe_n"),
        ("ghpo", "hint.scaf.rollouts"),
        ("grpo", "hint.conditioning"),
        ("luffy", "hint.prompts"),
        ("sft", "hint.luffy.gamma"),
        ("score", "hint.style"),
        ("mlmt", "hint.score.alpha"),
    ],
)
def test_a_setting_that_the_method_does_not_read_is_found(method, given):
    assert unread_settings(method, [given], HintSettings()) == [given]


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("sage", "hint.max_tokens"),
        ("sage", "hint.search.probe_n"),
        ("mlmt", "hint.prompts"),
        ("mlmt", "hint.mlmt.alpha"),
    ],
)
def test_a_knob_that_the_method_reads_is_taken(method, given):
    assert unread_settings(method, [given], HintSettings()) == []


def test_texts_of_a_file_replace_only_the_named_ones(tmp_path):
    path = tmp_path / "texts.yaml"
    path.write_text("hint_lead: 'A hint:'\n")
    texts = read_texts(HintSettings(prompts=str(path)))
    assert texts.hint_lead == "A hint:"
    assert texts.hint_system == read_texts(HintSettings()).hint_system


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hint_led: x", "hint_led is not a setting"),
        ("hint_user: no fields", "hint_user must contain {problem}"),
        ("- a list", "expected a mapping"),
        ("hint_lead: [", "did not find expected node content"),
    ],
)
def test_a_wrong_file_of_texts_is_refused(tmp_path, content, message):
    path = tmp_path / "texts.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_texts(HintSettings(prompts=str(path)))


def built(name, **hint):
    node = method_defaults()["hint"] | hint
    return build_method({"method": name, **asdict(SageLightSettings())}, read_settings(node))


def test_levels_that_no_prompt_asks_for_are_refused_where_hints_are_written():
    assert built("scaf", max_level=4).max_level == 16  # its hints are columns of the data
    assert built("grpo", max_level=4).max_level == 0
    assert built("sage", max_level=4, source="dataset").max_level == 4
    refused = "hint.max_level=4, but the built-in prompt asks for 3 levels; give hint.prompts"
    for source in (None, "self_generated", "teacher"):
        with pytest.raises(ConfigError, match=refused):
            built("sage", max_level=4, source=source)


def test_a_response_does_not_train_under_a_prompt_that_lacks_its_beginning():
    assert built("sage", style="prefill").max_level == 3
    assert built("sage", conditioning="unhinted").max_level == 3
    with pytest.raises(ConfigError, match=r"hint\.conditioning=unhinted with hint\.style=prefill"):
        built("sage", style="prefill", conditioning="unhinted")
