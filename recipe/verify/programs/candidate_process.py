"""Run the program of a response, which sees its own text and the arguments of calls alone.

Started by ``program`` with one descriptor, whose other end is the process that holds the asserts.
The order: close the sandbox, say so, get the program, run it, then answer requests about what it
defined until the other side hangs up. Nothing that this process says is believed to be more than
data.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types
from _sitebuiltins import Quitter

from recipe.verify.programs import wire
from recipe.verify.programs.sandbox import attempt, confine_self
from recipe.verify.programs.source import visible
from recipe.verify.programs.wire import Channel, Unsendable, decode, encode

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SPECIAL = [
    *wire.ACCESS, *wire.CONVERSIONS, *wire.WAITING, *wire.ORDER, *wire.BINARY, *wire.IN_PLACE,
    *(f"r{name}" for name in wire.BINARY),
]  # fmt: skip


def _compiled(source: str) -> types.CodeType:
    """Compile a program; one that is not Python as it stands, without its invisible characters."""
    try:
        return compile(source, "solution.py", "exec", dont_inherit=True)
    except SyntaxError:  # tried second, for a text of Python may hold such characters
        return compile(visible(source), "solution.py", "exec", dont_inherit=True)


class Program:
    """What the program left behind, and how the other side may use it."""

    def __init__(self, channel: Channel) -> None:
        # A module of its own that can be found, because dataclasses and pickle look it up.
        self._module = types.ModuleType("solution")
        self._module.__file__ = "solution.py"
        sys.modules["solution"] = self._module
        builtins.exit = builtins.quit = Quitter("exit", "")  # Python's own, which -S leaves out
        self._channel = channel
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._loop: Any = None

    def serve(self) -> dict[str, Any]:
        """Answer requests until a message is not a request."""
        while True:
            message = self._channel.receive()
            if "do" not in message:
                return message
            self._channel.send(self.answer(message))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one request: a value, or the exception as data."""
        value, problem = attempt(self._serve, request)
        if problem is None:
            return value
        told, _ = attempt(self._raised, problem)
        return {"raised": told or {"class": self._class(RuntimeError)}}

    def _serve(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request["do"]
        if kind == "run":
            exec(_compiled(request["source"]), self._module.__dict__)
            return {"value": None}
        if kind == "get":
            return {"value": self._encode(self._module.__dict__[request["name"]])}
        arguments = [self._decode(form) for form in request["args"]]
        if kind != "call":
            waits = kind in wire.WAITING
            value = self._wait(kind, arguments) if waits else _OPERATIONS[kind](*arguments)
            return {"value": self._encode(value)}
        named = {name: self._decode(form) for name, form in request["named"].items()}
        values = (*arguments[1:], *named.values())
        given = [encode(each, self._bare) for each in values]
        value = arguments[0](*arguments[1:], **named)
        reply = {"value": self._encode(value)}
        aliases = [place for place, each in enumerate(values) if each is value]
        reply |= {"alias": aliases[0]} if aliases else {}
        changed = [
            None if encode(each, self._bare) == before else self._encode(each)
            for each, before in zip(values, given, strict=True)
        ]
        return {**reply, "args": changed} if any(changed) else reply

    def _wait(self, kind: str, arguments: list[Any]) -> Any:
        """Return the result of something that is awaited, in the one loop of this process."""
        import asyncio

        if kind == "aiter":
            return aiter(arguments[0])
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

        async def waited() -> Any:
            if kind == "await":
                return await arguments[0]
            target, *rest = arguments
            if kind == "aexit":
                return await _leave(target, rest[0], kind)
            return await getattr(type(target), f"__{kind}__")(target)

        return self._loop.run_until_complete(waited())

    def _encode(self, value: Any) -> Any:
        return encode(value, self._refer)

    def _decode(self, form: Any) -> Any:
        return decode(form, self._resolve)

    def _number(self, value: Any) -> int:
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)  # kept, so that no other object gets its id
        return number

    def _bare(self, value: Any) -> dict[str, Any]:
        return {"t": "object", "v": self._number(value)}

    def _refer(self, value: Any) -> dict[str, Any]:
        """Return an object's number, and as data what kind of thing it is."""
        kind = type(value)
        if issubclass(kind, type) and issubclass(value, BaseException):
            return self._class(value)
        form = {**self._bare(value), "name": kind.__name__}
        form["has"] = [name for name in _SPECIAL if hasattr(kind, f"__{name}__")]
        base = wire.plain_base(kind)
        if base is not None:
            form["base"] = base.__name__
        if base is not None and base not in _MUTABLE:
            form["plain"] = self._encode(_plain(value, base))
            # What the program, or Enum and the like, wrote over the plain type's own.
            mro = type.mro(kind)
            written = {name for each in mro[: mro.index(base)] for name in vars(each)}
            names = (*form["has"], "eq", *wire.TEXTS)
            form["has"] = [name for name in names if f"__{name}__" in written]
        if kind in (type, type(len)) and vars(builtins).get(value.__name__) is value:
            form["builtin"] = value.__name__
        return form

    def _class(self, kind: type) -> dict[str, Any]:
        """Return the form of an exception class: by name, or by number if it is the program's."""
        module = kind.__module__
        if module != "solution":
            return {"t": "exception", "v": -1, "name": kind.__name__, "module": module}
        bases = [self._class(each) for each in kind.__bases__ if issubclass(each, BaseException)]
        number = self._number(kind)
        return {"t": "exception", "v": number, "name": kind.__name__, "bases": bases}

    def _raised(self, problem: BaseException) -> dict[str, Any]:
        text, _ = attempt(str, problem)
        told = {"class": self._class(type(problem)), "text": (text or "")[:2000]}
        arguments, _ = attempt(self._encode, problem.args)
        return {**told, "args": arguments or {"t": "tuple", "v": []}, **self._bare(problem)}

    def _resolve(self, form: dict[str, Any]) -> Any:
        kind, value = form["t"], form["v"]
        if kind == "object":
            return self._objects[value]
        if kind == "name":  # something of the library that the tests pass on
            module, name = value
            __import__(module)
            return operator.attrgetter(name)(sys.modules[module])
        if kind == "callback":
            return _Callback(self, value) if form["calls"] else _Iterator(self, value)
        if kind == "raise":
            return self._decode(value)(*map(self._decode, form["args"]))
        raise Unsendable(kind)

    def call_back(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Have a function of the tests called, where the tests are."""
        forms = [self._encode(each) for each in arguments]
        named_forms = {name: self._encode(each) for name, each in named.items()}
        self._channel.send({"callback": number, "args": forms, "named": named_forms})
        reply = self.serve()
        if "raised" in reply:
            raise self._decode(reply["raised"])
        return self._decode(reply["value"])


class _Callback:
    """A function of the tests."""

    def __init__(self, program: Program, number: int) -> None:
        self._program, self._number = program, number
        self.__name__ = self.__qualname__ = "callback"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._program.call_back(self._number, arguments, named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


class _Iterator(_Callback):
    """An iterator of the tests."""

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        return self._program.call_back(self._number, (), {})


_MUTABLE = (list, set, dict, bytearray)


def _plain(value: Any, base: type) -> Any:
    """Return what is left of an object as its plain base type."""
    if base in (int, float, str):
        return getattr(base, f"__{base.__name__}__")(value)
    if base is complex:
        return complex(value.real, value.imag)
    return dict(dict.items(value)) if base is dict else base(base.__iter__(value))


def _equal(left: Any, right: Any) -> bool:
    """Return ``left == right``; false for an object that is equal to everything."""
    return bool(left == right) and not any(map(_equals_all, (left, right)))


def _equals_all(value: Any) -> bool:
    answer, problem = attempt(lambda: bool(value == object()))
    return problem is None and answer


def _leave(target: Any, problem: BaseException | None, kind: str = "exit") -> Any:
    return getattr(type(target), f"__{kind}__")(
        target, *((type(problem), problem, None) if problem is not None else (None,) * 3)
    )


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in wire.ORDER},
    **{name: getattr(operator, f"__{name}__") for name in wire.BINARY if name != "divmod"},
    **{name: getattr(operator, f"__{name}__") for name in wire.IN_PLACE},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "contains")},
    **{name: getattr(operator, name) for name in ("neg", "pos", "invert", "index")},
    **{name: getattr(builtins, name) for name in (*wire.TEXTS, "bool", "int", "float", "complex")},
    **{name: getattr(builtins, name) for name in ("abs", "round", "len", "divmod", "hash", "dir")},
    **{name: getattr(builtins, name) for name in ("iter", "next", "reversed", "type")},
    **{name: getattr(builtins, name) for name in ("getattr", "setattr", "delattr")},
    **{name: getattr(builtins, name) for name in ("isinstance", "issubclass")},
    **{name: getattr(math, name) for name in ("trunc", "floor", "ceil")},
    "send": lambda target, value: target.send(value),
    "eq": _equal,
    "ne": lambda left, right: bool(left != right),
    "enter": lambda target: type(target).__enter__(target),
    "exit": _leave,
    "plain": lambda value: _plain(value, wire.plain_base(type(value)) or tuple),
    "copy": lambda value: __import__("copy").copy(value),
    "deepcopy": lambda value: __import__("copy").deepcopy(value),
}


def main(arguments: list[str]) -> None:
    """Serve until the other side is gone.

    Args:
        arguments: Descriptor, CPU seconds, MiB of memory, layers, the parent's process id.
    """
    descriptor, cpu_s, memory_mib, layers, parent_pid = arguments
    channel = Channel(int(descriptor))
    del sys.path[0]  # the folder of this package
    problem = confine_self(cpu_s, memory_mib, layers, parent_pid)
    channel.send({"refused": problem} if problem else {"confined": True})
    if not problem:
        attempt(Program(channel).serve)
