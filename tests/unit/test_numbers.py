"""``nan`` and ``inf`` are refused wherever a number is read, by name."""

from dataclasses import fields, is_dataclass

import pytest

from recipe.hint.settings import HintSettings, read_settings
from recipe.run.errors import ConfigError
from recipe.run.typed import check_finite, read_json


def float_settings(value, path=()):
    """Path of every setting that holds a number, by the defaults."""
    for item in fields(value):
        found = getattr(value, item.name)
        if is_dataclass(found):
            yield from float_settings(found, (*path, item.name))
        elif isinstance(found, float) or item.type in ("float", "float | None"):
            yield (*path, item.name)


@pytest.mark.parametrize("path", sorted(float_settings(HintSettings())), ids=".".join)
def test_every_setting_of_a_number_refuses_it(path):
    for value in (float("nan"), float("inf"), float("-inf")):
        node = value
        for name in reversed(path):
            node = {name: node}
        with pytest.raises(ConfigError, match=rf"hint\.{'.'.join(path)}={value} must be a finite"):
            read_settings(node)


def test_json_that_holds_it_is_no_json():
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        for text in (word, f"[{word}]", f'{{"a": {{"b": {word}}}}}'):
            with pytest.raises(ValueError, match="is not a finite number"):
                read_json(text)
    assert read_json(b'{"a": [1, -2.5e3, "NaN", null]}') == {"a": [1, -2500.0, "NaN", None]}
    with pytest.raises(ConfigError, match=r"x\.a\[1\]=inf must be a finite"):
        check_finite({"a": [1, float("inf")]}, "x")
