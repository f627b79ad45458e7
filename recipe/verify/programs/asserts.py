"""Run the tests of a problem against a program that lives in another process.

The program gets the arguments of each call and sends back plain data. The expected values, the
comparison, the count of the checks and the verdict stay here, so nothing that the program prints,
overrides, raises or ends can turn a failure into a pass.
"""

from __future__ import annotations

import builtins
import functools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from recipe.verify.programs import tests as written
from recipe.verify.programs.candidate import Channel, PeerEnded, Unsupported, decode, encode
from recipe.verify.programs.sandbox import attempt, confine_self
from recipe.verify.programs.tests import Tests, Unrunnable

ENDED = "ended"
_MAX_DETAIL_CHARS = 1000


class Remote:
    """The program's process.

    Attributes:
        fault: Reason and detail once the tests cannot go on: what crosses is not plain data, or the
            program ended, or sent what is not a message.
        num_answers: How many values and results the program has given.
    """

    def __init__(self, channel: Channel) -> None:
        self.fault = ("", "")
        self.num_answers = 0
        self._channel = channel
        self._is_held = False
        self._changes: list[tuple[Any, Any]] = []  # an argument, and what became of it

    def ask(self, request: dict[str, Any], given: Sequence[Any] = ()) -> Any:
        """Return what the program has or gives; raise what it raises."""
        answer, problem = attempt(self._exchange, request, given)
        if problem is not None:
            self.fault = (ENDED, "the program ended, or sent something other than a message")
            raise PeerEnded(self.fault[1])
        value, error = answer
        if isinstance(error, Unsupported):
            self.fault = ("unsupported", f"the program gives {error}"[:200])
        elif "args" in request or (error is None and not callable(value)):
            self.num_answers += 1
        if error is not None:
            raise error
        return value

    def _exchange(
        self, request: dict[str, Any], given: Sequence[Any]
    ) -> tuple[Any, Exception | None]:
        """Return a value or an exception; whatever this raises means that neither came."""
        self._channel.send(request)
        reply = self._channel.receive()
        if "unsupported" in reply:
            return None, Unsupported(reply["unsupported"])
        if "raised" in reply:
            return None, _exception(reply)
        if reply["is_callable"]:
            return self.function(request["name"]), None
        value = decode(reply["value"])
        for place, form in reply["changed"]:
            target, after = given[place], decode(form)
            if not isinstance(after, list | set | dict) or not isinstance(target, type(after)):
                raise PeerEnded
            self._changes.append((target, after))
        if not self._is_held:
            self.step(is_held=False)
        # The program says that it gave an argument back; believed where it is the very value.
        if (alias := reply["alias"]) is not None and repr(given[alias]) == repr(value):
            return given[alias], None
        return value, None

    def function(self, name: str, *, is_truth: bool = False) -> Callable[..., Any]:
        """Return what calls a function of the program, or asks for its result's truth."""

        def call(*arguments: Any, **named: Any) -> Any:
            given = [*arguments, *named.values()]
            if any(each is target for each in given for target, _ in self._changes):
                self.step(self._is_held)
            request = {"name": name, "is_truth": is_truth}
            try:
                request |= {"args": encode(list(arguments)), "named": encode(named)}
            except Unsupported as problem:
                self.fault = ("unsupported", f"the tests pass {problem}")
                raise
            return self.ask(request, given)

        return call

    def step(self, is_held: bool) -> None:
        """Begin a statement: do here what the program did to the arguments of its calls.

        In ``assert f(xs) == sorted(xs)`` the program could change what it is compared with, so the
        changes of a statement with a comparison are held until the next one.
        """
        self._is_held = is_held
        for target, after in self._changes:
            target.clear()
            (target.extend if isinstance(target, list) else target.update)(after)
        self._changes = []


def _exception(reply: dict[str, Any]) -> Exception:
    """Return what the program raised, as one of Python's own exceptions."""
    for name in reply["raised"]:
        kind = getattr(builtins, name)
        # Python ends loops and generators with some; others cannot be made of a text.
        if issubclass(kind, Exception) and kind not in (StopIteration, StopAsyncIteration):
            error, _ = attempt(kind, str(reply["text"]))
            if error is not None:
                return error
    return Exception(str(reply["text"]))


def grade(channel: Channel, source: str, text: str) -> tuple[str, str]:
    """Return reason (``ENDED``: the program ended too early) and detail."""
    try:
        tests = Tests(text)
    except Unrunnable as error:
        return "error", str(error)
    if problem := attempt(exec, tests.imports, {"__name__": "tests"})[1]:
        return "error", (
            f"{problem}: the tests import what is not there; they may import Python's own"
            " library, and take what the program defines by its name alone"
        )
    remote, began, passed = Remote(channel), Counter[int](), Counter[int]()

    def step(at: tuple[int, bool]) -> None:
        remote.step(is_held=at[1])
        began.update(at[:1] if at[0] else ())

    namespace: dict[str, Any] = {
        "__name__": "__main__",
        written.STEP: step,
        written.PASSED: lambda check: passed.update([check]),
        written.METHOD: remote.function,
        written.TRUTH: functools.partial(remote.function, is_truth=True),
        **{name: __import__(name) for name in tests.modules},
    }
    _, problem = attempt(_run, remote, source, tests, namespace)
    if remote.fault[0]:
        return remote.fault
    if problem is not None:
        shown = f"{type(problem).__name__}: {attempt(str, problem)[0]}"
        if failed := [line for check, line in tests.lines.items() if began[check] > passed[check]]:
            check = text.splitlines()[failed[0] - 1].strip()
            shown = f"{check}\n{shown} (line {failed[0]} of the tests)"
        return "wrong", shown[:_MAX_DETAIL_CHARS].encode("utf-8", "replace").decode()
    if missed := [place for check, place in tests.lines.items() if check not in began]:
        return "wrong", f"the check of line {missed[0]} never ran"
    if began != passed:
        return "wrong", "a check failed, and the tests went on"
    if not remote.num_answers:
        return "error", "the tests ask the program for no value; compare what it returns"
    return "correct", ""


def _run(remote: Remote, source: str, tests: Tests, namespace: dict[str, Any]) -> None:
    remote.ask({"source": source})
    remote.num_answers = 0  # the next ones are about what it defines
    for name in tests.names:
        try:
            namespace[name] = remote.ask({"name": name})
        except KeyError:  # NameError where it is used
            if hasattr(builtins, name):  # Python's own is not meant
                raise
    exec(tests.code, namespace)
    for name in tests.runs:
        namespace[name]()


def main(descriptor: str, *limits: str) -> None:
    """Read a request and write a verdict; ``limits`` are those of ``confine_self``."""
    channel, request = Channel(int(descriptor)), json.load(sys.stdin)
    out = open(os.dup(1), "w")  # noqa: SIM115
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the tests print is no verdict
    _, problem = attempt(confine_self, *limits)
    hello, _ = attempt(channel.receive)
    verdict = "error", f"the sandbox: {problem or hello}"
    if not problem and hello == {"confined": True}:
        verdict = grade(channel, request["source"], request["tests"])
    json.dump(verdict, out)
    out.close()
