"""Plain data between a program and its tests, one JSON text per line.

A form makes plain data and nothing else: it names no type, imports nothing and calls nothing.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from typing import Any

_MAX_LINE_BYTES = 16 << 20
_MAX_DEPTH = 100
_MAX_BARE_INT = 1 << 64  # Python refuses very long decimals
_SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset}
_PLAIN = (type(None), bool, int, float, complex, str, bytes, list, dict, *_SEQUENCES.values())


class PeerEnded(Exception):
    """The other process closed its end, or sent what is not a message."""


class Unsupported(Exception):
    """A value that is not plain data."""


class Channel:
    """Messages over one descriptor; ``PeerEnded`` when the other process is gone."""

    def __init__(self, descriptor: int) -> None:
        self._lines = open(descriptor, "rb", closefd=False)  # noqa: SIM115
        self._out = open(descriptor, "wb", closefd=False)  # noqa: SIM115

    def send(self, message: object) -> None:
        """Send one message."""
        # Not escaped: of two escapes, halves of a character, JSON would make one character.
        text = json.dumps(message, ensure_ascii=False) + "\n"
        try:
            self._out.write(text.encode("utf-8", "surrogatepass"))
            self._out.flush()
        except OSError:
            raise PeerEnded from None

    def receive(self) -> Any:
        """Return the next message; one that is too long or bad is none."""
        try:
            line = self._lines.readline(_MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                raise PeerEnded
            return json.loads(line.decode("utf-8", "surrogatepass"))
        except (OSError, ValueError, RecursionError, MemoryError):
            raise PeerEnded from None


def encode(value: Any, depth: int = 0) -> Any:
    """Return plain data as JSON; an object of a derived class as its plain part.

    Raises:
        Unsupported: Something in it is not plain data, or it is nested too deep.
    """
    if depth > _MAX_DEPTH:
        raise Unsupported(f"data nested deeper than {_MAX_DEPTH} levels")
    base = next((kind for kind in type(value).__mro__ if kind in _PLAIN), None)
    if base is None:
        raise Unsupported(f"a value of type {type(value).__name__}"[:100])
    if value is None or base is bool:
        return value
    if base in (int, float, str):
        bare = getattr(base, f"__{base.__name__}__")(value)
        return {"int": hex(bare)} if base is int and abs(bare) >= _MAX_BARE_INT else bare
    if base is complex:
        return {"complex": [value.real, value.imag]}
    if base is bytes:
        return {"bytes": bytes.hex(value)}
    if base is dict:
        return {"dict": [encode(list(pair), depth + 1) for pair in dict.items(value)]}
    iter_of: Any = base.__dict__["__iter__"]  # not one that the program has defined
    items = [encode(each, depth + 1) for each in iter_of(value)]
    return items if base is list else {base.__name__: items}


def decode(form: Any) -> Any:
    """Return the value that ``encode`` sent; any exception means that it is not such a form."""
    if isinstance(form, list):
        return [decode(each) for each in form]
    if not isinstance(form, dict):
        return form
    [(name, value)] = form.items()
    if name == "int":
        return int(value, 16)
    if name == "complex":
        return complex(*value)
    if name == "bytes":
        return bytes.fromhex(value)
    if name == "dict":
        return dict(map(decode, value))
    return _SEQUENCES[name](map(decode, value))
