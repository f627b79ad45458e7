"""The program's process as the tests see it: questions out, plain data back.

What comes back is a copy of plain data, or a number, for which a stand-in is made here
(``standins``). No text of the program is run, no callable of this process is
found by a name that the program sends, and an exception is one of Python's own types or a class
made here.
"""

from __future__ import annotations

import builtins
import json
import sys

from recipe.verify.programs import standins
from recipe.verify.programs.sandbox import attempt
from recipe.verify.programs.wire import (
    Channel,
    PeerEnded,
    Unsendable,
    decode,
    encode,
    plain_base,
)

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from typing import Any

# These steer Python's own loops; a program may raise one only where it is asked for the next item.
_STEERING = {"StopIteration": "next send", "StopAsyncIteration": "anext", "GeneratorExit": ""}


_NO_FUNCTION = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"}


class ProgramRaised(Exception):
    """An exception of the program that has no type here."""


class Remote:
    """The program's process.

    Attributes:
        trouble: Why the tests cannot decide, once they met something that cannot be carried
            across; empty otherwise.
        is_gone: The program ended, or sent what is not a message.
        num_answers: How many questions were answered with more than an object.
        equalities: Pairs of the program's objects that it called equal.
    """

    def __init__(self, channel: Channel) -> None:
        self.trouble = ""
        self.is_gone = False
        self.num_answers = 0
        self.equalities: list[tuple[Any, Any]] = []
        self._channel = channel
        self._mirrors: dict[int, type[BaseException]] = {}
        self._callbacks: list[Any] = []
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._holders: list[Any] = []  # frames
        self._changes: list[tuple[Any, Any, Any]] = []  # frame, argument, what became of it

    def ask(self, do: str, *arguments: Any, **named: Any) -> Any:
        """Return what the program answers.

        Raises:
            BaseException: What the program raised, as a type of Python's or of this process's.
            PeerEnded: The program ended, or its reply is not one.
            Unsendable: The tests pass an object that cannot be carried across.
        """
        changing = {id(argument) for _, argument, _ in self._changes}
        if any(id(each) in changing for each in (*arguments, *named.values())):
            self._do_changes()
        message = {"do": do, "args": [self._encode(each) for each in arguments]}
        if do == "call":
            message["named"] = {name: self._encode(each) for name, each in named.items()}
        reply = self._exchange(message)
        value = self._value(reply["value"])
        if do != "call":
            return value
        given = (*arguments[1:], *named.values())
        changed = reply.get("args")
        if isinstance(changed, list) and len(changed) == len(given):
            pairs = [(each, form) for each, form in zip(given, changed, strict=True) if form]
            asker = _asker()
            self._changes += [(asker, each, self._value(form)) for each, form in pairs]
            if asker not in self._holders:
                self._do_changes(asker)
        if isinstance(value, standins.Ours):
            standins.info_of(value).made = (arguments, named)
            return value
        return self._given_back(value, given, reply.get("alias"))

    def start(self, source: str) -> None:
        """Have the program's text run."""
        self._exchange({"do": "run", "source": source})

    def get(self, name: str) -> Any:
        """Return what the program has under a name."""
        return self._value(self._exchange({"do": "get", "name": name})["value"])

    def ungraded(self, why: str) -> Unsendable:
        """Note that the tests cannot decide; return what to raise."""
        self.trouble = self.trouble or why
        return Unsendable(why)

    def hold(self) -> None:
        """Keep arguments as the tests wrote them, until ``release`` or their next use.

        In ``assert sorted(f(xs)) == sorted(xs)`` the program could otherwise change what it is
        compared with. Only what the test function with the comparison itself asks is held; a
        function that it calls (``def g(xs): f(xs); return xs``) sees what its own calls do.
        """
        self._holders.append(_asker())

    def release(self, *, all_holds: bool = False) -> None:
        """Do here what the program did to the arguments of its calls, now and from now on."""
        asker = self._holders.pop() if self._holders and not all_holds else None
        if asker is None:
            self._holders.clear()
        if asker not in self._holders:
            self._do_changes(asker)

    def is_copy(self, left: Any, right: Any) -> bool:
        """Return whether one value is an argument, the other what the program gave back of it."""
        for one, other in ((left, right), (right, left)):
            made, given = self._copies.get(id(one), (None, None))
            if made is one and given is other and made is not None:
                return True
        return False

    def _given_back(self, value: Any, given: tuple[Any, ...], place: Any) -> Any:
        """Return the argument that the program says it gave back if they agree, else the value.

        What is changed only after the comparison stays a copy until then, and is noted as one.
        """
        if type(place) is not int or not 0 <= place < len(given):
            return value
        argument = after = given[place]
        is_changed = False
        if hasattr(type(argument), "clear"):
            for _, each, became in self._changes:
                if each is argument:
                    after, is_changed = became, True
        is_same, _ = attempt(lambda: type(value) is type(argument) and _data(value) == _data(after))
        if not is_same or not is_changed:
            return argument if is_same else value
        self._copies[id(value)] = (value, argument)
        return value

    def _do_changes(self, asker: Any = None) -> None:
        """Make the changes that one function of the tests has caused, or all of them."""
        changes, self._changes = self._changes, []
        for change in changes:
            if asker in (None, change[0]):
                _overwrite(*change[1:])
            else:
                self._changes.append(change)

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the reply; functions of the tests are called meanwhile."""
        reply, problem = attempt(self._wait_for_reply, message)
        if isinstance(problem, PeerEnded):
            self.is_gone = True
        if problem is not None:
            raise problem
        if "raised" in reply:
            self.num_answers += 1
            error, trouble = attempt(self._exception, reply["raised"], str(message["do"]))
            if trouble is not None:
                self.is_gone = True
                raise PeerEnded
            raise error
        return reply

    def _wait_for_reply(self, message: Any) -> dict[str, Any]:
        while True:
            self._channel.send(message)
            reply = self._channel.receive()
            if not isinstance(reply, dict):
                raise PeerEnded
            if "callback" not in reply:
                if "raised" in reply or "value" in reply:
                    return reply
                raise PeerEnded
            message = self._called_back(reply)

    def _called_back(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Call a function that the tests passed, with data; its result or exception."""
        read, problem = attempt(
            lambda: (
                self._callbacks[int(reply["callback"])],
                [self._decode(form) for form in reply["args"]],
                {str(name): self._decode(form) for name, form in reply["named"].items()},
            )
        )
        if problem is not None:
            raise PeerEnded
        function, arguments, named = read
        value, problem = attempt(lambda: self._encode(function(*arguments, **named)))
        if problem is None:
            return {"value": value}
        told, _ = attempt(self._encode, problem)
        if told is None:
            raise self.ungraded(f"a function of the tests raised {type(problem).__name__}")
        return {"raised": told}

    def _value(self, form: Any) -> Any:
        value, problem = attempt(self._decode, form)
        if problem is not None:
            self.is_gone = True
            raise PeerEnded
        self.num_answers += not isinstance(value, (standins.StandIn, type))
        return value

    def _encode(self, value: Any) -> Any:
        return encode(value, self._refer)

    def _decode(self, form: Any) -> Any:
        return decode(form, self._resolve)

    def _resolve(self, form: dict[str, Any]) -> Any:
        if form["t"] == "exception":
            return self._exception_class(form)
        if form["t"] != "object":
            raise TypeError("no such form")
        plain = self._decode(form["plain"]) if "plain" in form else None
        return standins.make(self, form, plain)

    def _refer(self, value: Any) -> dict[str, Any]:
        """Return the form of an argument that is not plain data.

        Raises:
            Unsendable: It cannot be carried across.
        """
        if isinstance(value, standins.Ours):
            return {"t": "object", "v": standins.info_of(value).number}
        if isinstance(value, BaseException):
            number = vars(value).get(".number")
            if number is not None:
                return {"t": "object", "v": number}
            forms = [self._encode(each) for each in value.args]
            return {"t": "raise", "v": self._encode(type(value)), "args": forms}
        if isinstance(value, type) and ".number" in vars(value):
            return {"t": "object", "v": vars(value)[".number"]}
        name = _library_name(value)
        if name is not None:
            return {"t": "name", "v": name}
        calls = callable(value) and not isinstance(value, type)
        if calls or hasattr(type(value), "__next__"):
            iterator: Any = value
            self._callbacks.append(value if calls else iterator.__next__)
            return {"t": "callback", "v": len(self._callbacks) - 1, "calls": calls}
        base: Any = plain_base(type(value))
        if base is not None:  # a class of the tests
            return self._encode(base(value))
        raise self.ungraded(f"the tests pass a {type(value).__name__}, which cannot be copied")

    def _exception_class(self, form: dict[str, Any], depth: int = 0) -> type[BaseException]:
        """Return Python's own class, or a class made here in place of the program's."""
        number, name = form["v"], str(form["name"])
        if "bases" not in form:
            return _known_exception(str(form["module"]), name)
        if type(number) is not int or depth > 20:
            raise TypeError("no number")
        if number not in self._mirrors:
            bases = [self._exception_class(each, depth + 1) for each in form["bases"]]
            body = {".number": number, "__getattr__": _attribute_of, "__str__": _text_of}
            made, _ = attempt(type, name, tuple(bases), body)
            self._mirrors[number] = made or type(name, (bases[0],), body)
        return self._mirrors[number]

    def _exception(self, told: dict[str, Any], do: str) -> BaseException:
        """Return what the program raised, as an exception of this process."""
        kind = self._exception_class(told["class"])
        arguments = self._decode(told["args"])
        steers = next((name for name in _STEERING if issubclass(kind, getattr(builtins, name))), "")
        if steers and do not in _STEERING[steers].split():
            return RuntimeError(f"the program raised {steers}")
        made, _ = attempt(lambda: kind(*arguments) if _is_safe(kind, arguments) else None)
        error = made if type(made) is kind else kind.__new__(kind, *arguments)
        error.args = arguments
        state = {".number": told["v"], ".text": str(told.get("text")), ".remote": self}
        vars(error).update(state)
        return error


def _asker() -> Any:
    """Return the frame of the test function that asks; one of a comprehension belongs to it."""
    frame: Any = sys._getframe(1)
    while frame and (
        frame.f_code.co_filename != "tests.py" or frame.f_code.co_name in _NO_FUNCTION
    ):
        frame = frame.f_back
    return frame


def _known_exception(module: str, name: str) -> type[BaseException]:
    """Return a type of Python's own, or of a library module that the tests have loaded."""
    place = sys.modules.get(module) if module.split(".")[0] in sys.stdlib_module_names else None
    found = vars(place).get(name) if place is not None else None
    if isinstance(found, type) and issubclass(found, BaseException) and name != "SkipTest":
        return found
    return ProgramRaised


def _is_safe(kind: type[BaseException], arguments: tuple[Any, ...]) -> bool:
    """Return whether a class may be called: Python does not check the range of a Unicode error."""
    if kind.__module__ != "builtins" or not issubclass(kind, UnicodeError):
        return kind.__module__ == "builtins"
    if kind is UnicodeError:
        return True
    text, start, end = arguments[-4:-1]
    is_plain = type(text) in (str, bytes) and type(start) is type(end) is int
    return is_plain and 0 <= start < end <= len(text)


def _attribute_of(error: BaseException, name: str) -> Any:
    """Return an attribute of the program's own exception, asked of the program."""
    state = vars(error)
    if name.startswith("__") or ".remote" not in state:
        raise AttributeError(name)
    form = {"t": "object", "v": state[".number"], "name": "", "has": []}
    return state[".remote"].ask("getattr", standins.make(state[".remote"], form, None), name)


def _text_of(error: BaseException) -> str:
    return vars(error).get(".text") or ", ".join(map(str, error.args))


def _data(value: Any) -> str:
    """Return what a value is, with the types of all its parts; the order in a set says nothing."""

    def mark(part: Any) -> dict[str, Any]:
        is_ours = isinstance(part, standins.Ours)
        return {"t": "object", "v": standins.info_of(part).number if is_ours else f"{id(part)}"}

    def in_order(form: Any) -> Any:
        if isinstance(form, list):
            return [in_order(each) for each in form]
        if not isinstance(form, dict):
            return form
        parts = in_order(form["v"])
        is_set = form["t"] in ("set", "frozenset")
        return {**form, "v": sorted(parts, key=json.dumps) if is_set else parts}

    return json.dumps(in_order(encode(value, mark)))


def _library_name(value: Any) -> list[str] | None:
    """Return module and name of something of the standard library, to import it there."""
    owner = getattr(value, "__objclass__", value)  # of str.upper: str
    module, name = getattr(owner, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    found: Any = (
        sys.modules.get(module) if module.split(".")[0] in sys.stdlib_module_names else None
    )
    for part in name.split("."):
        found = getattr(found, part, None)
    return [module, name] if found is value else None


def _overwrite(argument: Any, changed: Any) -> None:
    """Do here what the program did to a list, set or dict that it was given."""
    if type(argument) is not type(changed) or isinstance(argument, standins.Ours):
        return
    if isinstance(argument, (list, bytearray)):
        argument[:] = changed
    elif hasattr(argument, "clear"):
        argument.clear()
        (argument.extend if hasattr(argument, "extend") else argument.update)(changed)
