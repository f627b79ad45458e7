"""Run the program of a response, which sees its own text and the arguments of calls alone.

The order: close the sandbox, say so, get the program, run it, answer calls until the other side
hangs up. Nothing that this process says is believed to be more than data.
"""

from __future__ import annotations

import builtins
import sys
import types
from _sitebuiltins import Quitter

from recipe.verify.programs.sandbox import attempt, confine_self
from recipe.verify.programs.wire import Channel, Unsupported, decode, encode

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from typing import Any


class Program:
    """What the program left behind."""

    def __init__(self) -> None:
        # A module of its own that can be found, because dataclasses and pickle look it up.
        module = sys.modules["solution"] = types.ModuleType("solution")
        module.__file__ = "solution.py"
        builtins.exit = builtins.quit = Quitter("exit", "")  # Python's own, which -S leaves out
        self._names = module.__dict__

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one request: a value, an exception as data, or why there is none."""
        reply, problem = attempt(self._serve, request)
        if isinstance(problem, Unsupported):
            return {"unsupported": str(problem)}
        if problem is None:
            return {"changed": [], "alias": None, "is_callable": False, **reply}
        told, _ = attempt(_raised, problem)
        return told or {"raised": [], "text": ""}

    def _serve(self, request: dict[str, Any]) -> dict[str, Any]:
        if "source" in request:
            code = compile(request["source"], "solution.py", "exec", dont_inherit=True)
            exec(code, self._names)
            return {"value": None}
        name, _, method = request["name"].partition("().")
        if "args" not in request:
            value = self._names[name]
            return {"is_callable": True} if callable(value) else {"value": encode(value)}
        # ``Solution().total`` is a method of a new object.
        function = getattr(self._names[name](), method) if method else self._names[name]
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


def _raised(problem: BaseException) -> dict[str, Any]:
    """Return the names of an exception's types in Python, its text; arguments if it is Python's."""
    mro = type(problem).__mro__
    names = [kind.__name__ for kind in mro if vars(builtins).get(kind.__name__) is kind]
    text, _ = attempt(str, problem)
    arguments, _ = attempt(encode, problem.args) if len(names) == len(mro) else (None, None)
    return {"raised": names, "text": str(text)[:2000], "args": arguments}


def main(descriptor: str, *limits: str) -> None:
    """Serve until the other side is gone; ``limits`` are those of ``confine_self``."""
    channel = Channel(int(descriptor))
    problem = confine_self(*limits)
    channel.send({"refused": problem} if problem else {"confined": True})
    program = Program()
    while not problem:
        channel.send(program.answer(channel.receive()))
