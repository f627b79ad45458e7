"""A group of settings files is given a name of a file, or left out."""

import pytest

from recipe.hint.command.compose import choose_hardware, set_config_paths
from recipe.run.errors import ConfigError


@pytest.mark.parametrize("group", ["hardware", "experiment", "data", "critic@critic"])
@pytest.mark.parametrize("value", ["null", "", "None", "3", "1.5e-3", "true"])
def test_a_value_that_names_no_file_is_refused_for_every_group(monkeypatch, group, value):
    monkeypatch.setenv("HINT_VERL_CONFIG", "")  # which set_config_paths then replaces
    set_config_paths()
    with pytest.raises(ConfigError, match=rf"{group}={value} names no file of /.*; give a name"):
        choose_hardware([f"{group}={value}"], has_gpu=True)


def test_fields_name_no_file_of_ours_but_are_taken_for_a_section_of_verls(monkeypatch):
    monkeypatch.setenv("HINT_VERL_CONFIG", "")
    set_config_paths()
    with pytest.raises(ConfigError, match="hardware={a:1} names no file of "):
        choose_hardware(["hardware={a:1}"], has_gpu=True)
    given = ["data={max_response_length:77}"]
    assert choose_hardware(given, has_gpu=True) == (given, "")


@pytest.mark.parametrize("given", ["data=legacy_data", "hardware=node8", "hint.source=null"])
def test_a_name_and_a_setting_of_nothing_are_taken(monkeypatch, given):
    monkeypatch.setenv("HINT_VERL_CONFIG", "")
    set_config_paths()
    assert choose_hardware([given], has_gpu=True) == ([given], "")
