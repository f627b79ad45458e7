"""Stand-ins for the program's objects that are not plain data.

A stand-in is an object of a class made here whose special methods ask the program. An object of a
class that derives from ``int``, ``str``, ``tuple`` and the like is the plain value itself, with the
program asked only for names that the plain type lacks and for operators between two of its objects.

The program never decides how its object compares with plain data of the tests. Plain data beside
an operator (``f(x) - 4.0``) is shown to the program only where the tests built the object
themselves by a capitalised name (``Vector(1, 2) * 3``), and what comes out may only be used as an
object: ``abs(f(x) - 4.0) < 0.1`` would otherwise be the program's to answer.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types

from recipe.verify.programs import wire

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from recipe.verify.programs.remote import Remote

# How an object came to the tests: given back by the program, built by a capitalised name, or made
# by an operator from a built object and plain data.
RESULT, BUILT, MIXED = "result", "built", "mixed"
_BASES: dict[str, type] = {
    kind.__name__: kind
    for kind in (int, float, complex, str, bytes, tuple, frozenset, list, dict, set, bytearray)
}
_CHANGING = (list, dict, set, bytearray)
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
    """Return what a stand-in knows of its object."""
    return object.__getattribute__(value, ".info")


def _asks(name: str) -> Callable[..., Any]:
    """Make a method that gives the program's answer."""
    return lambda self, *arguments: info_of(self).remote.ask(name, self, *arguments)


class Ours:
    """Any value that stands for an object of the program."""


class StandIn(Ours):
    """An object that is not plain data; special methods are added by what the object has."""

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

    def __instancecheck__(self, instance: Any) -> bool:
        return bool(info_of(self).remote.ask("isinstance", instance, self))

    def __subclasscheck__(self, subclass: Any) -> bool:
        return bool(info_of(self).remote.ask("issubclass", subclass, self))

    def __deepcopy__(self, _: Any) -> Any:
        return info_of(self).remote.ask("deepcopy", self)

    def __reduce_ex__(self, _: Any) -> Any:
        raise info_of(self).remote.ungraded("the tests pickle an object of the program")

    __hash__ = _asks("hash")
    __setattr__, __delattr__, __dir__ = _asks("setattr"), _asks("delattr"), _asks("dir")
    __str__, __repr__, __format__ = _asks("str"), _asks("repr"), _asks("format")
    __copy__ = _asks("copy")


def type_of(value: Any) -> Any:
    """Return ``type(value)``; for an object of the program, its class there."""
    return info_of(value).remote.ask("type", value) if isinstance(value, Ours) else type(value)


def same(left: Any, right: Any) -> bool:
    """Return ``left is right``; for objects of the program, as it is there."""
    if isinstance(left, Ours) and isinstance(right, Ours):
        return info_of(left).number == info_of(right).number
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Ours) and (name := info_of(one).form.get("builtin")):
            return other is getattr(builtins, str(name), one)
    return left is right


_classes: dict[Any, type] = {}


def make(remote: Remote, form: dict[str, Any], plain: Any) -> Any:
    """Return the stand-in of one object.

    Args:
        remote: The program's process.
        form: What that process said of the object.
        plain: The object as plain data of its base type, if it has one that never changes.

    Raises:
        TypeError, ValueError: ``form`` is not a form.
    """
    info = Info(remote, form, plain)
    has = tuple(name for name in form["has"] if name in _METHODS)
    name = str(form["name"]).replace("\0", "")
    is_data = plain is not None and type(plain) is info.base
    if info.base not in (None, *_CHANGING) and not is_data:
        raise TypeError("a value that never changes comes with it, and is asked for once")
    key = (name, has, info.base if is_data else None)
    if key not in _classes:
        body = {f"__{each}__": _METHODS[each] for each in has}
        if is_data:
            body["__getattr__"] = lambda self, name: info_of(self).remote.ask("getattr", self, name)
            body["__hash__"] = type(plain).__hash__
            _classes[key] = type(name, (type(plain), Ours), _for_data(body))
        else:
            body |= {"__eq__": _equals, "__ne__": _differs, "__hash__": StandIn.__hash__}
            _classes[key] = type(name, (StandIn,), body)
    value = _classes[key](plain) if is_data else _classes[key]()
    object.__setattr__(value, ".info", info)
    return value


def _for_data(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a value that is plain data itself leaves to the program."""
    kept = {*map("__{}__".format, _OPERATORS), *map("__{}__".format, wire.ORDER)}
    kept |= {"__getattr__", "__hash__", "__eq__", "__call__", "__enter__", "__exit__"}
    kept |= {"__str__", "__repr__", "__format__"}
    return {name: method for name, method in body.items() if name in kept}


def built(value: Any) -> Any:
    """Mark an object as one that the tests built."""
    return _in_state(value, BUILT) if isinstance(value, Ours) else value


def shows_nothing(left: Any, right: Any) -> bool:
    """Return whether an object that the tests built equals another whatever it is built from."""
    for one, other in ((left, right), (right, left)):
        if all(_equals_twin(one, other, step) for step in _STEPS):
            return True
    return False


def _equals_twin(one: Any, other: Any, step: int) -> bool:
    """Return whether an object equals what another would be, built from other values."""
    try:
        twin = perturbed(one, step)
        return twin is not one and bool(info_of(one).remote.ask("eq", twin, other))
    except Exception:  # noqa: BLE001 whatever the program raises, it did not say that they are equal
        return False


def perturbed(value: Any, step: int, rebuilt: dict[int, Any] | None = None) -> Any:
    """Return another value of the same kind, or the same where none is known.

    An object that the tests built is built again; ``rebuilt`` says what became of those by number.
    """
    kind, own = type(value), _KINDS_OF_TIME.get(type(value).__name__)
    if isinstance(value, Ours):
        return _built_otherwise(value, step, {} if rebuilt is None else rebuilt)
    if value is None or kind is bool:
        return f"~{step}" if value is None else not value
    if kind in (int, float, complex) or kind.__name__ in ("Decimal", "Fraction"):
        return value + step
    if kind in (str, bytes):
        return value + ("~" if kind is str else b"~") * (1 + step % 2)
    if own and kind.__module__ == "datetime":
        return own(value, step)
    if kind in (list, tuple, set, frozenset):
        items = [perturbed(each, step, rebuilt) for each in value]
        return value if all(map(operator.is_, items, value)) else kind(items)
    if kind is dict:
        items = [perturbed(each, step, rebuilt) for each in value.values()]
        is_same = all(map(operator.is_, items, value.values()))
        return value if is_same else dict(zip(value, items, strict=True))
    return value


def _built_otherwise(value: Any, step: int, rebuilt: dict[int, Any]) -> Any:
    """Return what the tests built, from other values; the same where they did not build it."""
    info = info_of(value)
    if info.state != BUILT or info.made is None:
        return value
    if info.number not in rebuilt:
        (kind, *given), named = info.made
        others = [perturbed(each, step, rebuilt) for each in given]
        others_named = {name: perturbed(each, step, rebuilt) for name, each in named.items()}
        pairs = zip((*others, *others_named.values()), (*given, *named.values()), strict=True)
        is_same = all(other is each for other, each in pairs)
        ask = info.remote.ask
        rebuilt[info.number] = value if is_same else ask("call", kind, *others, **others_named)
    return rebuilt[info.number]


def _later(value: Any, step: int) -> Any:
    return value + sys.modules["datetime"].timedelta(days=1 + step % 1000)


_STEPS = (1, 1000003)
_KINDS_OF_TIME: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("date", "datetime", "timedelta"), _later),
    "time": lambda time, step: time.replace(minute=(time.minute + step % 7) % 60),
}


def _in_state(value: Any, state: str) -> Any:
    info = info_of(value)
    made = make(info.remote, info.form, info.plain)
    info_of(made).state, info_of(made).made = state, info.made
    return made


def _plain(value: Any) -> Any:
    """Return an object whose class derives from a plain type, as that type; else itself."""
    info = info_of(value) if isinstance(value, Ours) else None
    if info is None or info.base is None:
        return value
    if not isinstance(value, StandIn):
        return info.plain
    if info.state == MIXED:
        raise info.remote.ungraded(_OWN_WORD.format("=="))
    plain = info.remote.ask("plain", value)
    if type(plain) is not info.base:  # a list that says it is a number would be any number
        raise wire.PeerEnded
    return plain


def _equals(one: Any, other: Any) -> bool:
    info = info_of(one)
    if isinstance(other, Ours):
        is_equal = bool(info.remote.ask("eq", one, other))
        if is_equal:
            info.remote.equalities.append((one, other))
        return is_equal
    if not isinstance(one, StandIn):
        return info.plain == other
    if info.base:
        return _plain(one) == other
    if "builtin" in info.form:
        return same(one, other)
    if info.state == BUILT and info.remote.ask("eq", one, other) is True:
        raise info.remote.ungraded(_OWN_WORD.format("=="))
    return False


def _differs(one: Any, other: Any) -> bool:
    if isinstance(other, Ours):
        return bool(info_of(one).remote.ask("ne", one, other))
    return not _equals(one, other)


_OWN_WORD = (
    "only the program says what `{}` between plain data and its object is; compare an attribute,"
    " or with another of its objects"
)


def _operate(name: str, left: Any, right: Any) -> Any:
    """Apply a binary operator to operands of which at least one is the program's."""
    ours = [each for each in (left, right) if isinstance(each, Ours)]
    info = info_of(ours[0])
    if len(ours) == 1 and (info.state == RESULT or name in wire.ORDER):
        if info.base is None:
            raise info.remote.ungraded(_OWN_WORD.format(name))
        name = name[1:] if name in wire.IN_PLACE else name
        call = divmod if name == "divmod" else getattr(operator, f"__{name}__")
        return call(_plain(left), _plain(right))
    result = info.remote.ask(name, left, right)
    if name in wire.ORDER:
        return bool(result)
    if len(ours) == 1:
        if not isinstance(result, StandIn):  # its value would be the program's answer
            raise info.remote.ungraded(_OWN_WORD.format(name))
        is_changed_in_place = name in wire.IN_PLACE and info_of(result).number == info.number
        return _in_state(result, info.state if is_changed_in_place else MIXED)
    if isinstance(result, Ours) and all(info_of(each).state == BUILT for each in ours):
        return _in_state(result, BUILT)
    return result


def _binary(name: str, *, is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return _operate(name, other, self) if is_reflected else _operate(name, self, other)

    return method


def _question(name: str) -> Callable[..., Any]:
    """Return a special method that asks the program, but not about what it made of plain data."""

    def method(self: Any, *arguments: Any) -> Any:
        info = info_of(self)
        if info.state == MIXED and name in _BLOCKED:
            raise info.remote.ungraded(_OWN_WORD.format(name))
        result = info.remote.ask(name, self, *arguments)
        if name in _UNARY and isinstance(result, StandIn):
            return _in_state(result, info.state)
        if name in _UNARY and info.state == MIXED:
            raise info.remote.ungraded(_OWN_WORD.format(name))
        return result

    return method


def _text(name: str) -> Callable[..., str]:
    return lambda self, *spec: str.__str__(info_of(self).remote.ask(name, self, *spec))


def _contains(self: Any, item: Any) -> bool:
    info = info_of(self)
    has = info.form["has"]
    if isinstance(item, Ours):
        return bool(info.remote.ask("contains", self, item))
    if info.base and info.state == RESULT:
        return item in _plain(self)
    if info.state != MIXED and "iter" in has and any(e is item or e == item for e in self):
        return True
    if info.state == RESULT and "iter" in has:
        return False
    answers = [info.state == BUILT and bool(info.remote.ask("contains", self, item))]
    if answers[0]:
        answers += [_contains_other(self, item, step) for step in _STEPS]
    if info.state != BUILT or all(answers):
        raise info.remote.ungraded(_OWN_WORD.format("in"))
    return answers[0]


def _contains_other(self: Any, item: Any, step: int) -> bool:
    try:
        return bool(info_of(self).remote.ask("contains", self, perturbed(item, step)))
    except Exception:  # noqa: BLE001 whatever the program raises, it did not say yes
        return False


def _call(self: Any, *arguments: Any, **named: Any) -> Any:
    return info_of(self).remote.ask("call", self, *arguments, **named)


def _exit(name: str) -> Callable[..., Any]:
    return lambda self, _, problem, __: info_of(self).remote.ask(name, self, problem)


def _await(self: Any) -> Any:
    return info_of(self).remote.ask("await", self)
    yield


def _waiting(name: str) -> Callable[..., Any]:
    async def method(self: Any) -> Any:
        return info_of(self).remote.ask(name, self)

    return method


async def _aexit(self: Any, _: Any, problem: Any, __: Any) -> Any:
    return info_of(self).remote.ask("aexit", self, problem)


_UNARY = ("neg", "pos", "invert", "abs", "round")
_BLOCKED = {*wire.CONVERSIONS, "iter", "next", "hash"} - {"neg", "pos", "invert"}
_OPERATORS = [*wire.BINARY, *wire.IN_PLACE, *(f"r{name}" for name in wire.BINARY)]
_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _question(name) for name in (*wire.ACCESS, *wire.CONVERSIONS, "aiter")},
    **{name: _binary(name) for name in (*wire.BINARY, *wire.ORDER, *wire.IN_PLACE)},
    **{f"r{name}": _binary(name, is_reflected=True) for name in wire.BINARY},
    **{name: _text(name) for name in wire.TEXTS},
    **{name: _waiting(name) for name in ("anext", "aenter")},
    "eq": _equals,
    "call": _call,
    "contains": _contains,
    "exit": _exit("exit"),
    "await": _await,
    "aexit": _aexit,
}
