"""Stand-ins for the program's objects that are no plain data.

A stand-in is a class made here whose special methods ask the program
(``operators``). An object of a class that derives from ``int``, ``str``,
``tuple`` and the like is the plain value itself, with the program asked only for names that the
plain type lacks and for operators between two of its objects.
"""

from __future__ import annotations

import builtins
import types

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from typing import Any

    from recipe.hint.verify.programs.remote import Remote

# How an object came to the tests: given back by the program, built by a capitalised name, or made
# by an operator from such a one and plain data.
RESULT, BUILT, MIXED = "result", "built", "mixed"
_BASES: dict[str, type] = {
    kind.__name__: kind
    for kind in (int, float, complex, str, bytes, tuple, frozenset, list, dict, set, bytearray)
}
_KINDS = {"function": types.FunctionType, "generator": types.GeneratorType}


class Info:
    """What a stand-in knows; kept out of reach of the attributes that the tests ask for."""

    def __init__(self, remote: Remote, form: dict[str, Any], plain: Any) -> None:
        self.remote = remote
        self.form = form
        self.plain = plain  # of what is plain data itself
        self.number = int(form["v"])
        self.base = _BASES.get(str(form.get("base")))
        self.state = RESULT
        self.made: tuple[tuple[Any, ...], dict[str, Any]] | None = None


def info_of(value: Any) -> Info:
    """What a stand-in knows of its object."""
    return object.__getattribute__(value, ".info")


class Ours:
    """Any value that stands for an object of the program."""


OURS = (Ours,)


class StandIn(Ours):
    """An object that is no plain data; special methods are added by what the object has."""

    def __getattribute__(self, name: str) -> Any:
        info = info_of(self)
        if name == "__class__":
            kind = _KINDS.get(str(info.form.get("name")))
            return info.base or kind or type(self)
        if name == "send" and info.form.get("name") == "generator":
            return lambda value: info.remote.ask("send", self, value)
        if name in ("__copy__", "__deepcopy__", "__reduce_ex__"):
            return object.__getattribute__(self, name)
        return info.remote.ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        info_of(self).remote.ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        info_of(self).remote.ask("delattr", self, name)

    def __hash__(self) -> int:
        return info_of(self).remote.ask("hash", self)

    def __dir__(self) -> Any:
        return info_of(self).remote.ask("dir", self)

    def __instancecheck__(self, instance: Any) -> bool:
        return bool(info_of(self).remote.ask("isinstance", instance, self))

    def __subclasscheck__(self, subclass: Any) -> bool:
        return bool(info_of(self).remote.ask("issubclass", subclass, self))

    def __copy__(self) -> Any:
        return info_of(self).remote.ask("copy", self)

    def __deepcopy__(self, _: Any) -> Any:
        return info_of(self).remote.ask("deepcopy", self)

    def __reduce_ex__(self, _: Any) -> Any:
        raise info_of(self).remote.undecided("the tests pickle an object of the program")

    def __str__(self) -> str:
        return info_of(self).remote.ask("str", self)

    def __repr__(self) -> str:
        return info_of(self).remote.ask("repr", self)

    def __format__(self, spec: str) -> str:
        return info_of(self).remote.ask("format", self, spec)


def number_of(value: Any) -> int:
    """The number of the object in the program's process."""
    return info_of(value).number


def note_call(value: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Remember which call gave an object."""
    info_of(value).made = (arguments, named)


def type_of(value: Any) -> Any:
    """``type(value)``, for an object of the program its class there."""
    return info_of(value).remote.ask("type", value) if isinstance(value, Ours) else type(value)


def same(left: Any, right: Any) -> bool:
    """``left is right``, for objects of the program as it is there."""
    if isinstance(left, Ours) and isinstance(right, Ours):
        return info_of(left).number == info_of(right).number
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Ours) and (name := info_of(one).form.get("builtin")):
            return other is getattr(builtins, str(name), one)
    return left is right
