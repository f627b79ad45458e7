"""Values between a program and the tests that judge it, as data that cannot act.

One JSON text per line. Values whose type is exactly a plain one of Python's are copied; for all
else ``refer`` gives the form. Reading a form makes plain data only: it imports nothing but the
types listed here, and a callable or a class never comes out of it.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Form = Any  # plain JSON
    Refer = Callable[[Any], Form]

MAX_LINE_BYTES = 16 << 20
_MAX_PLAIN_INT = 1 << 53
# What a stand-in can pass on to the object that it stands for: Python's special methods.
BINARY = "add sub mul truediv floordiv mod pow matmul divmod and or xor lshift rshift".split()
ORDER = "lt le gt ge".split()
IN_PLACE = [f"i{name}" for name in BINARY if name != "divmod"]
CONVERSIONS = "bool int float complex index abs round trunc floor ceil neg pos invert len".split()
ACCESS = "call iter next getitem setitem delitem contains reversed enter exit".split()
WAITING = "await aiter anext aenter aexit".split()
TEXTS = "str repr format".split()


class PeerEnded(Exception):
    """The other process closed its end, or sent what is no message."""


class Unsendable(Exception):
    """A value that can neither be copied nor be stood for."""


class Channel:
    """Messages over one descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._lines = open(descriptor, "rb", buffering=1 << 16, closefd=False)  # noqa: SIM115
        self._out = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115

    def send(self, message: object) -> None:
        """Send one message.

        Raises:
            PeerEnded: The other process is gone.
        """
        data = memoryview(json.dumps(message).encode("ascii") + b"\n")
        try:
            while data:
                data = data[self._out.write(data) :]
        except OSError:
            raise PeerEnded from None

    def receive(self) -> Any:
        """The next message.

        Raises:
            PeerEnded: There is none, it is longer than ``MAX_LINE_BYTES``, or it is no JSON.
        """
        try:
            line = self._lines.readline(MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                raise PeerEnded
            return json.loads(line)
        except (OSError, ValueError, RecursionError, MemoryError):
            raise PeerEnded from None


def encode(value: Any, refer: Refer) -> Form:
    """``value`` as JSON; ``refer(value)`` gives the form of what is not exactly a plain type."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if abs(value) < _MAX_PLAIN_INT else {"t": "int", "v": hex(value)}
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    if name in _WRITERS:
        return {"t": name, "v": _WRITERS[name](value, refer)}
    return refer(value)


def plain_base(kind: type) -> type | None:
    """The plain type that a class derives from, if any."""
    return next((base for base in kind.__mro__ if base in _PLAIN), None)


def _items(values: Any, refer: Refer) -> list[Form]:
    return [encode(value, refer) for value in values]


def _pairs(values: Any, refer: Refer) -> list[Form]:
    return [[encode(key, refer), encode(value, refer)] for key, value in values.items()]


def _defaults(value: Any, refer: Refer) -> list[Form]:
    factory = next((name for name, kind in _FACTORIES.items() if kind is value.default_factory), "")
    return [factory, _pairs(value, refer)]


_PLAIN = (
    int, str, float, complex, bytes, tuple, frozenset, list, set, dict, bytearray,
)  # fmt: skip
# What a defaultdict of plain data may make; any other factory is lost, and a missing key raises.
_FACTORIES: dict[str, type] = {
    kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)
}
_WRITERS: dict[str, Callable[[Any, Refer], Form]] = {
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "dict_keys", "dict_values"), _items),
    "dict": _pairs,
    "collections.OrderedDict": _pairs,
    "collections.Counter": _pairs,
    "collections.defaultdict": _defaults,
    "collections.deque": lambda value, refer: [value.maxlen, _items(value, refer)],
    "dict_items": lambda value, refer: [_items(pair, refer) for pair in value],
    "bytes": lambda value, _: value.hex(),
    "bytearray": lambda value, _: value.hex(),
    "complex": lambda value, _: [value.real, value.imag],
    "range": lambda value, refer: _items((value.start, value.stop, value.step), refer),
    "decimal.Decimal": lambda value, _: str(value),
    "fractions.Fraction": lambda value, _: str(value),
    "datetime.date": lambda value, _: value.isoformat(),
    "datetime.time": lambda value, _: value.isoformat(),
    "datetime.datetime": lambda value, _: value.isoformat(),
    "datetime.timedelta": lambda value, _: [value.days, value.seconds, value.microseconds],
}


def decode(form: Form, resolve: Callable[[dict[str, Any]], Any]) -> Any:
    """The value that ``encode`` sent; ``resolve`` gets the forms that ``refer`` made.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, ArithmeticError: The form is not one of
            ``encode``.
    """
    if not isinstance(form, dict):
        if isinstance(form, list):
            raise TypeError("a bare list is not a form")
        return form
    kind, value = form["t"], form["v"]
    if kind in _READERS:
        return _READERS[kind](value, resolve)
    module, _, name = kind.partition(".")
    if kind in _WRITERS:
        return _decode_rare(getattr(__import__(module), name), value, resolve)
    return resolve(form)


def _all(forms: Any, resolve: Callable[[dict[str, Any]], Any]) -> list[Any]:
    return [decode(form, resolve) for form in forms]


def _dict(forms: Any, resolve: Callable[[dict[str, Any]], Any]) -> dict[Any, Any]:
    return {decode(key, resolve): decode(item, resolve) for key, item in forms}


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "list": _all,
    "tuple": lambda value, resolve: tuple(_all(value, resolve)),
    "set": lambda value, resolve: set(_all(value, resolve)),
    "frozenset": lambda value, resolve: frozenset(_all(value, resolve)),
    "dict": _dict,
    "dict_keys": lambda value, resolve: dict.fromkeys(_all(value, resolve)).keys(),
    "dict_values": lambda value, resolve: dict(enumerate(_all(value, resolve))).values(),
    "dict_items": lambda value, resolve: _dict(value, resolve).items(),
    "int": lambda value, _: int(value, 16),
    "bytes": lambda value, _: bytes.fromhex(value),
    "bytearray": lambda value, _: bytearray.fromhex(value),
    "complex": lambda value, _: complex(*value),
    "range": lambda value, resolve: range(*_all(value, resolve)),
}


def _decode_rare(kind: Any, value: Any, resolve: Callable[[dict[str, Any]], Any]) -> Any:
    """A value of one of the library's plain types, all of them listed in ``_WRITERS``."""
    name = kind.__name__
    if name == "deque":
        return kind(_all(value[1], resolve), value[0])
    if name == "defaultdict":
        return kind(_FACTORIES[value[0]] if value[0] else None, _dict(value[1], resolve))
    if name in ("OrderedDict", "Counter"):
        return kind(_dict(value, resolve))
    if name == "timedelta":
        return kind(*map(int, value))
    if name == "Decimal":
        return kind(str(value))
    if name == "Fraction":  # no exponent, which would take time without limit to read
        return kind(*map(int, str(value).split("/")))
    return kind.fromisoformat(value)
