"""Methods that other installed packages declare."""

from importlib.metadata import EntryPoint

import pytest

from recipe.hint import methods
from recipe.hint.methods.sage import Sage
from recipe.run.errors import ConfigError


def declare(monkeypatch, **points):
    found = [
        EntryPoint(name.replace("_", "-"), value, methods.ENTRY_POINTS)
        for name, value in points.items()
    ]
    monkeypatch.setattr(methods, "entry_points", lambda group: found)


def test_a_declared_method_has_the_name_of_its_entry_point(monkeypatch):
    declare(monkeypatch, my_sage="recipe.hint.methods.sage:Sage")
    assert methods.declared_methods() == {"my-sage": "recipe.hint.methods.sage:Sage"}
    monkeypatch.setitem(methods.METHODS, "my-sage", "recipe.hint.methods.sage:Sage")
    assert methods.get_method("my-sage") is Sage


def test_an_entry_point_with_a_taken_name_is_told(monkeypatch):
    declare(monkeypatch, sage="recipe.hint.methods.sage:Sage")
    with pytest.raises(ConfigError, match="the entry point sage of hint.methods has the name of"):
        methods.declared_methods()


def test_an_entry_point_that_is_no_method_is_told(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "mine", "collections:OrderedDict")
    with pytest.raises(ConfigError, match="the entry point mine of hint.methods is .*OrderedDict"):
        methods.get_method("mine")
