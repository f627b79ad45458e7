"""Run the tests of a problem against a program that lives in another process.

The program gets the arguments of each call and sends back plain data. The expected values, the
comparison, the count of the checks and the verdict stay here, so nothing that the program prints,
overrides, raises or ends can turn a failure into a pass.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections import Counter

from recipe.verify.programs import tests as written
from recipe.verify.programs.sandbox import attempt, confine_self
from recipe.verify.programs.tests import Tests, Unrunnable
from recipe.verify.programs.wire import Channel, PeerEnded, Unsupported, decode, encode

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STARTED, ENDED = "started", "ended"
# Python fails on odd arguments of the Unicode errors, and ends loops and generators with others.
_NOT_RAISED = (UnicodeEncodeError, UnicodeDecodeError, UnicodeTranslateError, BaseExceptionGroup)
_NOT_RAISED += (StopIteration, StopAsyncIteration)


class Remote:
    """The program's process.

    Attributes:
        fault: Reason and detail once the tests cannot go on: what crosses is not plain data, or the
            program ended, or sent what is not a message.
        num_answers: How many questions were answered.
    """

    def __init__(self, channel: Channel) -> None:
        self.fault = ("", "")
        self.num_answers = 0
        self._channel = channel
        self._is_held = False
        self._changes: list[tuple[Any, Any]] = []  # an argument, and what became of it

    def start(self, source: str) -> None:
        """Have the program's text run."""
        self._ask({"source": source})

    def get(self, name: str) -> Any:
        """Return what the program has under a name; functions and classes can be called."""
        reply = self._ask({"name": name})
        return self.function(name) if "is_callable" in reply else self._read(reply, "value")

    def function(self, name: str, *, is_truth: bool = False) -> Callable[..., Any]:
        """Return what calls a function of the program, or asks for its result's truth."""
        rest = {"name": name, "is_truth": is_truth}
        return lambda *arguments, **named: self._call(rest, arguments, named)

    def step(self, is_held: bool) -> None:
        """Begin a statement: do here what the program did to the arguments of its calls.

        In ``assert f(xs) == sorted(xs)`` the program could change what it is compared with, so the
        changes of a statement with a comparison are held until the next one.
        """
        self._is_held = is_held
        for target, value in self._changes:
            target.clear()
            (target.extend if isinstance(target, list) else target.update)(value)
        self._changes = []

    def _call(self, rest: dict[str, Any], arguments: Any, named: dict[str, Any]) -> Any:
        given = [*arguments, *named.values()]
        if any(each is target for each in given for target, _ in self._changes):
            self.step(self._is_held)
        try:
            request = {**rest, "args": encode(list(arguments)), "named": encode(named)}
        except Unsupported as problem:
            self.fault = ("unsupported", f"the tests pass {problem}")
            raise
        reply = self._ask(request)
        value = self._read(reply, "value")
        for place, after in self._read(reply, "changed"):
            self._changes.append((given[place], after))
        if not self._is_held:
            self.step(is_held=False)
        # The program says that it gave an argument back; believed where it is the very value.
        alias = reply.get("alias")
        argument = given[alias] if type(alias) is int and 0 <= alias < len(given) else None
        is_same, _ = attempt(lambda: repr(value) == repr(argument))
        return argument if is_same else value

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._channel.send(request)
            reply = self._channel.receive()
        except PeerEnded:
            reply = None
        if not isinstance(reply, dict):
            raise self._gone()
        if "unsupported" in reply:
            self.fault = ("unsupported", f"the program gives {reply['unsupported']}"[:200])
            raise Unsupported(self.fault[1])
        if "raised" in reply:
            self.num_answers += 1
            error, problem = attempt(_exception, reply)
            raise self._gone() if problem else error
        return reply

    def _read(self, reply: dict[str, Any], name: str) -> Any:
        value, problem = attempt(lambda: decode(reply[name]))
        if problem is not None:
            raise self._gone()
        self.num_answers += 1
        return value

    def _gone(self) -> PeerEnded:
        self.fault = (ENDED, "the program ended, or sent something other than a message")
        return PeerEnded(self.fault[1])


def _exception(reply: dict[str, Any]) -> Exception:
    """Return what the program raised, as one of Python's own exceptions."""
    kinds = [getattr(builtins, name) for name in reply["raised"]]
    known = [each for each in kinds if issubclass(each, Exception) and each not in _NOT_RAISED]
    kind = known[0] if known else Exception
    is_exact = known and kind is kinds[0] and reply["args"] is not None
    error, _ = attempt(lambda: kind(*decode(reply["args"]))) if is_exact else (None, None)
    return error or kind(str(reply["text"]))


def grade(
    channel: Channel, source: str, text: str, tell: Callable[[str], None]
) -> tuple[str, str, int]:
    """Return reason (``ENDED``: the program ended too early), detail, line of the tests or 0.

    ``STARTED`` is told before the program's text is sent to its process.
    """
    try:
        tests = Tests(text)
        _import_all(tests.imports)
    except Unrunnable as error:
        return "error", str(error), 0
    tell(STARTED)
    remote, began, passed = Remote(channel), Counter[int](), Counter[int]()
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        written.BEGIN: lambda check: began.update([check]),
        written.PASSED: lambda check: passed.update([check]),
        written.STEP: remote.step,
        written.METHOD: remote.function,
        written.TRUTH: functools.partial(remote.function, is_truth=True),
        **{name: __import__(name) for name in tests.modules},
    }
    _, problem = attempt(_run, remote, source, tests, namespace)
    line = _line(problem)
    if remote.fault[0]:
        reason, detail = remote.fault
        return reason, detail, line
    if isinstance(problem, Unrunnable):
        return "error", str(problem), line
    if problem is not None:
        shown, _ = attempt(str, problem)
        shown = f"{type(problem).__name__}: {shown}"[:500]
        return "wrong", f"{shown} (line {line} of the tests)" if line else shown, line
    for check, place in tests.lines.items():
        if check not in began:
            return "wrong", f"the check of line {place} never ran", 0
    if began != passed:
        return "wrong", "a check failed, and the tests went on", 0
    if not remote.num_answers:
        return "error", "the tests ask the program for no value; compare what it returns", 0
    return "correct", "", 0


def _run(remote: Remote, source: str, tests: Tests, namespace: dict[str, Any]) -> None:
    remote.start(source)
    for name in tests.names:
        try:
            namespace[name] = remote.get(name)
        except KeyError:  # NameError where it is used
            if hasattr(builtins, name):  # Python's own is not meant
                raise
    exec(tests.code, namespace)
    for name in tests.runs:
        namespace[name]()
    if unittest := sys.modules.get("unittest"):
        for kind in list(namespace.values()):
            if isinstance(kind, type) and issubclass(kind, unittest.TestCase):
                _run_case(unittest, kind)


def _run_case(unittest: Any, kind: type) -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
    if result.skipped or result.expectedFailures or result.unexpectedSuccesses:
        raise Unrunnable("the tests skip a check, or expect it to fail")
    for _, text in (*result.errors, *result.failures):
        raise AssertionError(text.strip().rpartition("\n")[2])


def _import_all(imports: list[tuple[str, str]]) -> None:
    """Import what the tests import; ``Unrunnable`` where it is not there."""
    for module, name in imports:
        found, problem = attempt(__import__, module, fromlist=[name] if name else [])
        if problem is not None or (name and not hasattr(found, name)):
            raise Unrunnable(
                f"the tests import {name} from {module}, which is not there; they may import"
                " Python's own library, and take what the program defines by its name alone"
            )
    if unittest := sys.modules.get("unittest"):
        unittest.__dict__["main"] = lambda *_, **__: None  # the classes are run without it


def _line(problem: BaseException | None) -> int:
    """Return the line of the tests that an exception comes from; 0 for none."""
    line, step = 0, problem.__traceback__ if problem is not None else None
    while step is not None:
        if step.tb_frame.f_code.co_filename == "tests.py":
            line = step.tb_lineno
        step = step.tb_next
    return line


def main(control: str, descriptor: str, *limits: str) -> None:
    """Read one request and send one verdict; ``limits`` are those of ``confine_self``."""
    runner, channel = Channel(int(control)), Channel(int(descriptor))
    problem = confine_self(*limits)
    hello, _ = attempt(channel.receive)
    if problem or hello != {"confined": True}:
        runner.send(("error", f"the sandbox: {problem or hello}", 0))
    else:
        request = runner.receive()
        runner.send(grade(channel, request["source"], request["tests"], runner.send))
