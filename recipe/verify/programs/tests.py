"""A text of tests, and the form of it in which every check is counted.

The counted form calls ``STEP`` before each statement, with the number of the check that it is and
whether it compares, and ``PASSED`` after each assert: one that began and did not pass, or never
began, is a failure whatever the tests catch.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
from typing import Any

# A function, or a method of an object that its call makes: ``Solution().twoSum``.
_CALLED = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*)*")
# Names that no source text can spell.
STEP, PASSED, METHOD, TRUTH = ".step", ".passed", ".method", ".truth"
# True whatever the program does.
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Lambda, ast.GeneratorExp, ast.JoinedStr)
_HEAD = (ast.expr, ast.withitem)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_SETUP_END = "# end of what stands before the program\n"


class Unrunnable(ValueError):
    """The tests cannot show that a program is right; the message says why."""


class Tests:
    """Tests that can be run.

    Attributes:
        code: Their counted form.
        imports: Their imports alone.
        names: What they take from the program.
        modules: Modules of the standard library that they use by attribute, without importing them.
        lines: Line of each check that has to pass, by its number.
        runs: Functions ``test...`` that have to be called after ``code``.
    """

    def __init__(self, text: str) -> None:
        """Read the tests.

        Raises:
            Unrunnable: They are not Python, check nothing, or use nothing of the program.
        """
        try:
            tree = ast.parse(text)
            compile(text, "tests.py", "exec", dont_inherit=True)
            used = _used(text)
        except _UNREADABLE as error:
            told = " ".join(str(error).split())
            raise Unrunnable(f"the tests are not Python: {told}; write asserts") from error
        nodes = list(ast.walk(tree))
        owners = [node.value for node in nodes if isinstance(node, ast.Attribute)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        bare = {node.id for node in names if node not in owners}
        self.modules = (used - bare) & sys.stdlib_module_names
        self.names = sorted(used - self.modules)
        imports: list[ast.stmt] = [
            node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        self.imports = compile(ast.Module(imports, []), "tests.py", "exec", dont_inherit=True)
        functions = {node.name: None for node in tree.body if isinstance(node, ast.FunctionDef)}
        called = {node.id for node in names}
        self.runs = [name for name in functions if name.startswith("test") and name not in called]
        counter = _Counter(self.names)
        counter.visit(tree)
        self.lines = counter.lines
        if not counter.num_checks:
            raise Unrunnable("the tests hold no assert; write at least one")
        if not self.names:
            raise Unrunnable(
                "the tests use nothing of the program; call what it has to define, without import"
            )
        counted = ast.fix_missing_locations(tree)
        self.code = compile(counted, "tests.py", "exec", dont_inherit=True)


@functools.lru_cache(maxsize=64)
def used_names(text: str) -> frozenset[str]:
    """Return what tests take from the program; nothing where they are not Python."""
    try:
        return _used(text)
    except _UNREADABLE:
        return frozenset()


def _used(text: str) -> frozenset[str]:
    """Return the names that tests use and never bind at their top.

    Names that Python has itself keep their meaning, or a program could redefine ``set`` and
    ``all`` to pass; only tests that call one of them and nothing else (``assert sum(1, 2) == 3``)
    mean the program's.
    """
    import symtable

    top = symtable.symtable(text, "tests.py", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    tables, used = [top], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_outer = table is top or symbol.is_global()
            if is_outer and symbol.is_declared_global() and symbol.is_assigned():
                bound.add(symbol.get_name())
            elif is_outer and symbol.is_referenced():
                used.add(symbol.get_name())
    free = {name for name in used - bound if not name.startswith("__")}
    if own := {name for name in free if not hasattr(builtins, name)}:
        return frozenset(own)
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    called = free & {each.id for each in calls if isinstance(each, ast.Name)}
    called = {name for name in called if not isinstance(getattr(builtins, name), type)}
    return frozenset(called if len(called) == 1 else ())


class _Counter(ast.NodeTransformer):
    """Writes the calls that count, and those that begin a statement, into the tests."""

    def __init__(self, names: list[str]) -> None:
        self.lines: dict[int, int] = {}
        self.num_checks = 0
        self._names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Write them into each block of statements."""
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                counted = [part for each in statements for part in self._counted(each)]
                setattr(node, field, counted)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Ask for no more than the truth of a result that is asserted as it is."""
        self.generic_visit(node)
        test = node.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        if isinstance(test, ast.Call) and (name := self._name(test.func)):
            test.func = _call(TRUTH, name)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Make ``Solution().total`` one function of the program: its object stays there."""
        made = node.value
        if isinstance(made, ast.Call) and not made.args and not made.keywords:
            if name := self._name(made.func):
                return _call(METHOD, f"{name}().{node.attr}")
        return self.generic_visit(node)

    def _name(self, node: ast.expr) -> str:
        return node.id if isinstance(node, ast.Name) and node.id in self._names else ""

    def _counted(self, node: ast.stmt) -> list[ast.stmt]:
        """Return a statement with what has to be called before and after it."""
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            # The parts are checks of their own.
            parts = [ast.copy_location(ast.Assert(each), node) for each in test.values]
            return [statement for each in parts for statement in self._counted(each)]
        is_constant = isinstance(test, ast.Constant)
        says_something = test is not None and not (is_constant and test.value)
        if test is not None and says_something and _is_always_true(test):
            raise Unrunnable(f"line {node.lineno}: always true: {ast.unparse(node)[:80]}")
        self.num_checks += says_something
        site = self.num_checks if says_something else 0
        head = [each for each in ast.iter_child_nodes(node) if isinstance(each, _HEAD)]
        signs = [part for each in head for part in ast.walk(each) if isinstance(part, ast.cmpop)]
        is_held = any(not isinstance(sign, ast.Is | ast.IsNot) for sign in signs)
        is_held |= test is not None and not signs
        found = [ast.Expr(_call(STEP, (site, is_held))), node] if head else [node]
        if says_something and not is_constant:
            self.lines[site] = node.lineno
            found.append(ast.Expr(_call(PASSED, site)))
        return found


def _call(name: str, argument: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(argument)], [])


def _is_always_true(test: ast.expr) -> bool:
    """Return whether a test that is no constant is true whatever the program does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(
            _is_always_true(each) or (isinstance(each, ast.Constant) and bool(each.value))
            for each in test.values
        )
    if isinstance(test, ast.Compare):
        return not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(test))
    return isinstance(test, _DISPLAYS)


def with_entry_point(text: str, name: str) -> str:
    """Return tests in HumanEval's style, ``def check(candidate)``, with their call at the end."""
    is_called = re.search(r"^check\(", text, re.MULTILINE)
    is_check = re.search(r"^def check\(", text, re.MULTILINE)
    if is_called or not is_check or not _CALLED.fullmatch(name):
        return text
    return f"{text}\n\ncheck({name})"


def with_setup(setup: str, text: str) -> str:
    """Return tests with what stands before the program, in one text; the tests see it too."""
    if not setup.strip() or _SETUP_END in text:
        return text
    return f"{setup.strip()}\n{_SETUP_END}{text}"


def setup_of(text: str) -> str:
    """Return what stands before the program; empty where nothing does."""
    setup, end, _ = text.partition(_SETUP_END)
    return setup if end else ""
