"""Values between a program and the tests that grade it, as data that cannot act.

One JSON text per line. Values whose type is exactly a plain one of Python's are copied; for all
else ``refer`` gives the form. Reading a form makes plain data only: it imports nothing but the
types listed here, and a callable or a class never comes out of it.
"""

from __future__ import annotations

import builtins
import json
import re

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Form = Any  # plain JSON
    Refer = Callable[[Any], Form]
    Resolve = Callable[[dict[str, Any]], Any]

MAX_LINE_BYTES = 16 << 20
_MAX_PLAIN_INT = 1 << 53
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON reads two of them as one character
# What a stand-in can pass on to the object that it stands for: Python's special methods.
BINARY = "add sub mul truediv floordiv mod pow matmul divmod and or xor lshift rshift".split()
ORDER = "lt le gt ge".split()
IN_PLACE = [f"i{name}" for name in BINARY if name != "divmod"]
CONVERSIONS = "bool int float complex index abs round trunc floor ceil neg pos invert len".split()
ACCESS = "call iter next getitem setitem delitem contains reversed enter exit".split()
WAITING = "await aiter anext aenter aexit".split()
TEXTS = "str repr format".split()


class PeerEnded(Exception):
    """The other process closed its end, or sent what is not a message."""


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
        """Return the next message.

        Raises:
            PeerEnded: There is none, it is longer than ``MAX_LINE_BYTES``, or it is not JSON.
        """
        try:
            line = self._lines.readline(MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                raise PeerEnded
            return json.loads(line)
        except (OSError, ValueError, RecursionError, MemoryError):
            raise PeerEnded from None


def encode(value: Any, refer: Refer) -> Form:
    """Return ``value`` as JSON; ``refer(value)`` gives the form of what is not of a plain type."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is str and not _SURROGATE.search(value):
        return value
    if kind is int and abs(value) < _MAX_PLAIN_INT:
        return value
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return {"t": name, "v": _TYPES[name][0](value, refer)} if name in _TYPES else refer(value)


def decode(form: Form, resolve: Resolve) -> Any:
    """Return the value that ``encode`` sent; ``resolve`` gets the forms that ``refer`` made.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, ArithmeticError: The form is not one of
            ``encode``.
    """
    if not isinstance(form, dict):
        if isinstance(form, list):
            raise TypeError("a bare list is not a form")
        return form
    name, value = form["t"], form["v"]
    if name not in _TYPES:
        return resolve(form)
    module, _, own = name.rpartition(".")
    kind = getattr(__import__(module) if module else builtins, own, None)
    return _TYPES[name][1](kind, value, resolve)


def plain_base(kind: type) -> type | None:
    """Return the plain type that a class derives from, if any."""
    return next((base for base in kind.__mro__ if base in _PLAIN), None)


def _items(values: Any, refer: Refer) -> list[Form]:
    return [encode(value, refer) for value in values]


def _pairs(values: Any, refer: Refer) -> list[Form]:
    return [_items(pair, refer) for pair in values.items()]


def _defaults(value: Any, refer: Refer) -> list[Form]:
    factory = next((name for name, kind in _FACTORIES.items() if kind is value.default_factory), "")
    return [factory, _pairs(value, refer)]


def _all(forms: Any, resolve: Resolve) -> list[Any]:
    return [decode(form, resolve) for form in forms]


def _dict(forms: Any, resolve: Resolve) -> dict[Any, Any]:
    return {decode(key, resolve): decode(item, resolve) for key, item in forms}


_PLAIN = (
    int, str, float, complex, bytes, tuple, frozenset, list, set, dict, bytearray,
)  # fmt: skip
# What a defaultdict of plain data may make; any other factory is lost, and a missing key raises.
_FACTORIES: dict[str, type] = {
    kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)
}
_SEQUENCE = (_items, lambda kind, value, resolve: kind(_all(value, resolve)))
_MAPPING = (_pairs, lambda kind, value, resolve: kind(_dict(value, resolve)))
_HEX = (lambda value, _: value.hex(), lambda kind, value, _: kind.fromhex(value))
_ISO = (lambda value, _: value.isoformat(), lambda kind, value, _: kind.fromisoformat(value))
# How each plain type is written and read; a module is imported only when a value of it comes.
_TYPES: dict[str, tuple[Callable[[Any, Refer], Form], Callable[[Any, Any, Resolve], Any]]] = {
    **dict.fromkeys(("list", "tuple", "set", "frozenset"), _SEQUENCE),
    **dict.fromkeys(("dict", "collections.OrderedDict", "collections.Counter"), _MAPPING),
    **dict.fromkeys(("bytes", "bytearray"), _HEX),
    **dict.fromkeys(("datetime.date", "datetime.time", "datetime.datetime"), _ISO),
    "int": (lambda value, _: hex(value), lambda _, value, __: int(value, 16)),
    "str": (
        lambda value, _: value.encode("utf-8", "surrogatepass").hex(),
        lambda _, value, __: bytes.fromhex(value).decode("utf-8", "surrogatepass"),
    ),
    "complex": (
        lambda value, _: [value.real, value.imag],
        lambda kind, value, _: kind(*value),
    ),
    "range": (
        lambda value, refer: _items((value.start, value.stop, value.step), refer),
        lambda kind, value, resolve: kind(*_all(value, resolve)),
    ),
    "dict_keys": (
        _items,
        lambda _, value, resolve: dict.fromkeys(_all(value, resolve)).keys(),
    ),
    "dict_values": (
        _items,
        lambda _, value, resolve: dict(enumerate(_all(value, resolve))).values(),
    ),
    "dict_items": (
        lambda value, refer: [_items(pair, refer) for pair in value],
        lambda _, value, resolve: _dict(value, resolve).items(),
    ),
    "collections.defaultdict": (
        _defaults,
        lambda kind, value, resolve: kind(
            _FACTORIES[value[0]] if value[0] else None, _dict(value[1], resolve)
        ),
    ),
    "collections.deque": (
        lambda value, refer: [value.maxlen, _items(value, refer)],
        lambda kind, value, resolve: kind(_all(value[1], resolve), value[0]),
    ),
    "decimal.Decimal": (lambda value, _: str(value), lambda kind, value, _: kind(str(value))),
    "fractions.Fraction": (
        # Not as text: an exponent takes time without limit to read, a long number is refused.
        lambda value, _: [hex(value.numerator), hex(value.denominator)],
        lambda kind, value, _: kind(*(int(part, 16) for part in value)),
    ),
    "datetime.timedelta": (
        lambda value, _: [value.days, value.seconds, value.microseconds],
        lambda kind, value, _: kind(*map(int, value)),
    ),
}
