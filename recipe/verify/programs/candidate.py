"""Run the program of a response, which sees its own text and the arguments of calls alone.

The order: close the sandbox, say so, get the program, run it, answer calls until the other side
hangs up. Nothing that this process says is believed to be more than data: one JSON text per line,
whose forms make plain data and nothing else, name no type, import nothing and call nothing.
"""

from __future__ import annotations

import builtins
import json
import sys
import types
from _sitebuiltins import Quitter
from typing import Any

from recipe.verify.programs.sandbox import attempt, confine_self

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


def _answer(names: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to one request: a value, an exception as data, or why there is none.

    ``names`` are those that the program has defined.
    """
    reply, problem = attempt(_serve, names, request)
    if isinstance(problem, Unsupported):
        return {"unsupported": str(problem)}
    if problem is None:
        return {"changed": [], "alias": None, "is_callable": False, **reply}
    kinds = type(problem).__mro__
    text, _ = attempt(str, problem)
    return {
        "raised": [each.__name__ for each in kinds if vars(builtins).get(each.__name__) is each],
        "text": text[:2000] if type(text) is str else "",
    }


def _serve(names: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    if "source" in request:
        exec(compile(request["source"], "solution.py", "exec", dont_inherit=True), names)
        return {"value": None}
    name, _, method = request["name"].partition("().")
    if "args" not in request:
        value = names[name]
        return {"is_callable": True} if callable(value) else {"value": encode(value)}
    # ``Solution().total`` is a method of a new object.
    function = getattr(names[name](), method) if method else names[name]
    arguments, named = decode(request["args"]), decode(request["named"])
    given = [*arguments, *named.values()]
    before = list(map(encode, given))
    value = function(*arguments, **named)
    changed = [
        [place, form]
        for place, each in enumerate(given)
        if isinstance(each, list | set | dict) and (form := encode(each)) != before[place]
    ]
    alias = next((place for place, each in enumerate(given) if each is value), None)
    value = encode(bool(value) if request["is_truth"] else value)
    return {"value": value, "changed": changed, "alias": alias}


def main(descriptor: str, *limits: str) -> None:
    """Serve until the other side is gone; ``limits`` are those of ``confine_self``."""
    channel = Channel(int(descriptor))
    _, problem = attempt(confine_self, *limits)
    channel.send({"refused": str(problem)} if problem else {"confined": True})
    # A module of its own that can be found, because dataclasses and pickle look it up.
    module = sys.modules["solution"] = types.ModuleType("solution")
    module.__file__ = "solution.py"
    builtins.exit = builtins.quit = Quitter("exit", "")  # Python's own, which -S leaves out
    while not problem:
        channel.send(_answer(vars(module), channel.receive()))
