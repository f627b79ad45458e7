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
    assert methods._declared_methods() == {"my-sage": Sage}


@pytest.mark.parametrize(
    ("name", "value"),
    [("mine", "collections:OrderedDict"), ("sage", "recipe.hint.methods.sage:Sage")],
)
def test_an_entry_point_that_is_no_method_or_has_a_taken_name_is_told(monkeypatch, name, value):
    declare(monkeypatch, **{name: value})
    with pytest.raises(ConfigError, match=f"the entry point {name} of hint.methods"):
        methods._declared_methods()
