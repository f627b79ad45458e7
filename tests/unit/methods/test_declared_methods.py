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
    ("points", "told"),
    [
        ({"mine": "nowhere.at_all:Mine"}, "cannot be imported: ModuleNotFoundError"),
        ({"mine": "recipe.hint.methods.sage:Mine"}, "cannot be imported: AttributeError"),
        ({"mine": "collections:OrderedDict"}, "expected a subclass of Method"),
        ({"mine": "collections:namedtuple"}, "expected a subclass of Method"),
        ({"sage": "recipe.hint.methods.sage:Sage"}, "the name is taken"),
    ],
)
def test_an_entry_point_that_is_no_method_is_told_by_its_name(monkeypatch, points, told):
    declare(monkeypatch, **points)
    [(name, value)] = points.items()
    with pytest.raises(ConfigError) as raised:
        methods._declared_methods()
    assert f"the entry point {name} = {value} of hint.methods" in str(raised.value)
    assert told in str(raised.value)
