"""Methods that other installed packages declare."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from recipe.hint import methods
from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.methods.own_credit import OwnCredit
from recipe.hint.methods.sage import Sage
from recipe.hint.settings import build_method, read_settings, unread_settings
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


class OldCredit(Method):
    has_own_credit = True


class OldTurns(OwnCredit):
    is_multi_turn = True


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (OldCredit, "OldCredit has has_own_credit=True, .*; derive it from .*own_credit.OwnCredit"),
        (OldTurns, "OldTurns has is_multi_turn=True, .*; derive it from .*multi_turn.MultiTurn"),
    ],
)
def test_a_method_that_needs_another_base_class_is_told_which(monkeypatch, cls, told):
    monkeypatch.setitem(methods.METHODS, "mine", cls)
    with pytest.raises(ConfigError, match=f"trainer.method=mine: .*{told}, and leave"):
        methods.get_method("mine")


@dataclass(frozen=True)
class PlainSettings:
    weight: float = 0.5


@dataclass(frozen=True)
class OwnSettings(MethodSettings):
    weight: float = 0.5

    def unread(self):
        return {"weight": "another method"}


class Mine(OwnCredit):
    settings_node = "hint.mine"


@pytest.mark.parametrize("settings_cls", [PlainSettings, OwnSettings])
def test_settings_may_be_any_frozen_dataclass_and_those_of_the_base_say_what_is_unread(
    monkeypatch, settings_cls
):
    monkeypatch.setattr(Mine, "settings_cls", settings_cls)
    monkeypatch.setitem(methods.METHODS, "mine", Mine)
    settings = read_settings({"mine": {"weight": 2}})
    assert settings.of(Mine) == settings_cls(weight=2.0)
    assert build_method({"method": "mine"}, settings).settings == settings_cls(weight=2.0)
    found = unread_settings("mine", ["hint.mine.weight"], settings)
    assert found == (["hint.mine.weight"] if settings_cls is OwnSettings else [])
