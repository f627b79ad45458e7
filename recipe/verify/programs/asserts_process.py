"""Run the tests of a problem against a program that lives in another process.

The tests see stand-ins for what the program defined. The program gets the arguments of each
call and sends back plain data; the expected values, the comparison, the count of the checks and
the verdict stay here, so nothing that the program prints, overrides, raises or ends can turn a
failure into a pass.
"""

from __future__ import annotations

import builtins
import sys

from recipe.verify.programs import checklist, standins
from recipe.verify.programs.checklist import Checklist
from recipe.verify.programs.refusals import Unrunnable
from recipe.verify.programs.remote import Remote
from recipe.verify.programs.sandbox import attempt, confine_self
from recipe.verify.programs.wire import Channel, PeerEnded, Unsendable

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from recipe.verify.schema import Reason

STARTED = "started"
_MAX_TWINS = 8


class _Tally:
    """How often each check began and passed."""

    def __init__(self, remote: Remote, lines: dict[int, int]) -> None:
        self.began: dict[int, int] = {}
        self.passed: dict[int, int] = {}
        self._remote, self._lines = remote, lines

    def begin(self, check: int) -> None:
        """Note that a check begins; an exception may have left something held."""
        self.began[check] = self.began.get(check, 0) + 1
        self._remote.release(all_holds=True)

    def end(self, check: int) -> None:
        """Note that a check has passed."""
        self.passed[check] = self.passed.get(check, 0) + 1
        self._remote.release(all_holds=True)

    def fault(self) -> str:
        """Return why not every check passed each time; empty when it did."""
        for check in self._lines:
            if check not in self.began:
                return f"the check of line {self._lines[check]} never ran"
        failed = [check for check, count in self.began.items() if self.passed.get(check) != count]
        return f"a check failed, and the tests went on ({len(failed)})" if failed else ""

    def has_begun(self, lines: range) -> bool:
        """Return whether a check in these lines ran."""
        return any(self._lines.get(check) in lines for check in self.began)


def grade(
    channel: Channel, source: str, tests: str, tell: Callable[[str], None]
) -> tuple[Reason, str, int, bool]:
    """Return reason, detail, line of the tests or 0, and whether the program ended too early.

    ``STARTED`` is told before the program's text is sent to its process.
    """
    try:
        plan = Checklist(tests)
        _import_all(plan.imports)
    except Unrunnable as error:
        return "error", str(error), 0, False
    tell(STARTED)
    remote = Remote(channel)
    tally = _Tally(remote, plan.lines)
    _, problem = attempt(_run, remote, source, plan, tally)
    if remote.is_gone:
        return "wrong", "the program ended, or sent something other than a message", 0, True
    reason, detail = _verdict(remote, tally, problem)
    line = _line(problem)
    return reason, f"{detail} (line {line} of the tests)" if line else detail, line, False


def _verdict(remote: Remote, tally: _Tally, problem: BaseException | None) -> tuple[Reason, str]:
    if remote.trouble and (problem is None or isinstance(problem, Unsendable)):
        return "error", remote.trouble
    if isinstance(problem, getattr(sys.modules.get("unittest"), "SkipTest", ())):
        return "error", "the tests skip a check"
    if problem is not None:
        return "wrong", _shown(problem)
    if fault := tally.fault():
        return "wrong", fault
    if not remote.num_answers:
        return "error", "the tests ask the program for no value; compare what it returns"
    pairs = remote.equalities  # the first and the last, for others may be there to hide one
    twins = (*pairs[:_MAX_TWINS], *pairs[_MAX_TWINS:][-_MAX_TWINS:])
    if any(standins.shows_nothing(left, right) for left, right in twins):
        return "error", "the program's objects are equal whatever they are built from"
    return "correct", ""


def _run(remote: Remote, source: str, plan: Checklist, tally: _Tally) -> None:
    remote.start(source)
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        checklist.BEGIN: tally.begin,
        checklist.PASSED: tally.end,
        checklist.HOLD: remote.hold,
        checklist.RELEASE: remote.release,
        checklist.BUILT: standins.built,
        checklist.TYPE_OF: standins.type_of,
        checklist.SAME: lambda left, right: (
            standins.same(left, right) or remote.is_copy(left, right)
        ),
        **{name: __import__(name) for name in plan.modules},
    }
    for name in plan.names:
        found, problem = attempt(remote.get, name)
        if isinstance(problem, PeerEnded):
            raise problem
        if problem is None:
            namespace[name] = found
        elif hasattr(builtins, name):
            raise NameError(f"the program has no {name}, and Python's own is not meant")
    exec(plan.code, namespace)
    for name, lines in plan.runs:
        found = namespace[name]
        if isinstance(found, type):
            _run_class(found)
        elif not tally.has_begun(lines):
            _finish(found())


def _run_class(kind: type) -> None:
    """Call the tests of a class as a runner of ``unittest`` or ``pytest`` does."""
    _call(kind, "setUpClass", "setup_class")
    for name in (name for name in dir(kind) if name.startswith("test")):
        case = kind(name) if hasattr(kind, "failureException") else kind()
        if hasattr(case, "asyncSetUp"):
            _finish(_run_async(case, name))
            continue
        _call(case, "setUp", "setup_method")
        _finish(getattr(case, name)())
        _call(case, "tearDown", "teardown_method", "doCleanups")
    _call(kind, "tearDownClass", "teardown_class")


async def _run_async(case: Any, name: str) -> None:
    case.setUp()
    await case.asyncSetUp()
    await _awaited(getattr(case, name)())
    await case.asyncTearDown()
    case.tearDown()


def _call(target: Any, *names: str) -> None:
    for name in names:
        if hasattr(target, name):
            getattr(target, name)()


async def _awaited(value: Any) -> Any:
    return await value if hasattr(type(value), "__await__") else value


def _finish(value: Any) -> None:
    """Run what an asynchronous test gave back."""
    if hasattr(type(value), "__await__"):
        import asyncio

        asyncio.run(value)


def _import_all(imports: list[tuple[str, str]]) -> None:
    """Import what the tests import.

    Raises:
        Unrunnable: It is not there.
    """
    for module, name in imports:
        found, problem = attempt(__import__, module, fromlist=[name] if name else [])
        if problem is None and name and not hasattr(found, name):
            problem = ImportError(f"{module} has no {name}")
        if problem is not None:
            raise Unrunnable(
                f"the tests import {module}, and that fails: {problem}; they may import Python's"
                " own library, and take what the program defines by its name alone"
            )
    roots = {module.split(".")[0] for module, _ in imports}
    if "unittest" in roots:
        import unittest

        unittest.main = lambda *_, **__: None  # type: ignore[misc]  # the classes are run below
    if "dataclasses" in roots:
        import dataclasses

        for name in ("asdict", "astuple", "fields", "is_dataclass", "replace"):
            setattr(dataclasses, name, _where_it_is(getattr(dataclasses, name)))
    if "asyncio" in roots:
        import asyncio

        run = asyncio.run  # takes nothing but a coroutine of this process
        asyncio.run = lambda main, **named: run(_awaited(main), **named)


def _where_it_is(function: Any) -> Any:
    """Wrap a library function that looks into its argument, to call it where the argument is."""
    import functools

    @functools.wraps(function)
    def call(target: Any, *arguments: Any, **named: Any) -> Any:
        if not isinstance(target, standins.Ours):
            return function(target, *arguments, **named)
        return standins.info_of(target).remote.ask("call", call, target, *arguments, **named)

    return call


def _shown(problem: BaseException) -> str:
    text = vars(problem).get(".text")  # of what the program raised: its own
    if text is None:
        text, _ = attempt(str, problem)
    return f"{type(problem).__name__}: {text}"[:500]


def _line(problem: BaseException | None) -> int:
    """Return the line of the tests that an exception comes from; 0 for none."""
    line, step = 0, problem.__traceback__ if problem is not None else None
    while step is not None:
        if step.tb_frame.f_code.co_filename == "tests.py":
            line = step.tb_lineno
        step = step.tb_next
    return line


def main(arguments: list[str]) -> None:
    """Read one request and send one verdict.

    Args:
        arguments: Two descriptors, CPU seconds, MiB of memory, layers, the parent's process id.
    """
    control, descriptor, cpu_s, memory_mib, layers, parent_pid = arguments
    worker, channel = Channel(int(control)), Channel(int(descriptor))
    del sys.path[0]  # the folder of this package
    problem = confine_self(cpu_s, memory_mib, layers, parent_pid)
    hello, _ = attempt(channel.receive)
    if problem:
        verdict = ("error", f"the sandbox of the tests: {problem}", 0, False)
    elif hello != {"confined": True}:
        verdict = ("error", f"the sandbox of the program: {hello}", 0, False)
    else:
        request = worker.receive()
        verdict = grade(channel, request["source"], request["tests"], worker.send)
    worker.send(verdict)
