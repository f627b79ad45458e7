"""A text of tests, and the form of it in which every check is counted.

The counted form calls ``BEGIN`` before each check and ``PASSED`` after it: a check that began and
did not pass, or never began, is a failure whatever the tests catch. A check is an assert, or a
statement with an assert method of a ``unittest.TestCase``.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, TypeGuard

# A function, or a method of an object that its call makes: ``Solution().twoSum``.
_CALLED = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*)*")
# Names that no source text can spell.
BEGIN, PASSED, STEP, METHOD, TRUTH = ".begin", ".passed", ".step", ".method", ".truth"
# True whatever the program does.
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Lambda, ast.GeneratorExp, ast.JoinedStr)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_SETUP_END = "# end of what stands before the program"


class Unrunnable(ValueError):
    """The tests cannot show that a program is right; the message says why."""


class Tests:
    """Tests that can be run.

    Attributes:
        code: Their counted form.
        names: What they take from the program.
        modules: Modules of the standard library that they use without importing them.
        imports: What they import, as (module, name or empty).
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
            free = _free_names(text)
            compile(text, "tests.py", "exec", dont_inherit=True)
        except _UNREADABLE as error:
            told = " ".join(str(error).split())
            raise Unrunnable(f"the tests are not Python: {told}; write asserts") from error
        self.names, self.modules = _names(tree, free)
        self.imports = list(_imports(tree))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.runs = [
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            if node.name.startswith("test") and node.name not in used
        ]
        counter = _Counter(self.names)
        counter.visit(tree)
        self.lines = counter.lines
        if not counter.num_checks:
            raise Unrunnable("the tests hold no assert; write at least one")
        if not self.names:
            raise Unrunnable(
                "the tests use nothing of the program; call what it has to define, without import"
            )
        self.code: CodeType = compile(
            ast.fix_missing_locations(tree), "tests.py", "exec", dont_inherit=True
        )


def _names(tree: ast.Module, free: set[str]) -> tuple[list[str], list[str]]:
    """Return names that the tests take from the program, and modules that they do not import.

    Names that Python has itself keep their meaning, or a program could redefine ``set`` and
    ``all`` to pass; only tests that call one of them and nothing else (``assert sum(1, 2) == 3``)
    mean the program's. The same holds for modules: ``math.isclose`` is that of the library.
    """
    nodes = list(ast.walk(tree))
    owners = [node.value for node in nodes if isinstance(node, ast.Attribute)]
    bare = {node.id for node in nodes if isinstance(node, ast.Name) and node not in owners}
    own = {name for name in free if not hasattr(builtins, name)}
    modules = (own - bare) & (sys.stdlib_module_names - {"antigravity", "this"})
    if own - modules:
        return sorted(own - modules), sorted(modules)
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {each.id for each in functions if _is_name(each)}
    called = {name for name in called & free if not isinstance(getattr(builtins, name), type)}
    return (sorted(called) if len(called) == 1 else []), sorted(modules)


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


@functools.lru_cache(maxsize=64)
def used_names(text: str) -> frozenset[str]:
    """Return what tests use and do not define; built-ins only where they use nothing else.

    Tests that are not Python use nothing.
    """
    try:
        free = _free_names(text)
    except _UNREADABLE:
        return frozenset()
    return frozenset({name for name in free if not hasattr(builtins, name)} or free)


def _free_names(text: str) -> set[str]:
    """Return the names that the tests use and never bind at their top."""
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
    return {name for name in used - bound if not name.startswith("__")}


def _imports(tree: ast.AST) -> list[tuple[str, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [(module, "" if each.name == "*" else each.name) for each in node.names]
    return found


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
        if isinstance(test, ast.Call) and _is_name(test.func) and test.func.id in self._names:
            test.func = _call(TRUTH, test.func.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Make ``Solution().total`` one function of the program: its object stays there."""
        made = node.value
        if isinstance(made, ast.Call) and not made.args and not made.keywords:
            if isinstance(made.func, ast.Name) and made.func.id in self._names:
                return _call(METHOD, f"{made.func.id}().{node.attr}")
        return self.generic_visit(node)

    def _counted(self, node: ast.stmt) -> list[ast.stmt]:
        """Return a statement with what has to be called before and after it."""
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.BoolOp):
            if isinstance(node.test.op, ast.And):  # the parts are checks of their own
                parts = [ast.copy_location(ast.Assert(each), node) for each in node.test.values]
                return [statement for each in parts for statement in self._counted(each)]
        head = [each for each in ast.iter_child_nodes(node) if isinstance(each, _HEAD)]
        parts = [part for each in head for part in ast.walk(each)]
        is_check = _is_check(node)
        found = [node]
        if is_check or _is_fail(node):
            self.num_checks += 1
            site = self.num_checks
            found = [ast.Expr(_call(BEGIN, site)), node]
            if not _is_fail(node):
                self.lines[site] = node.lineno
                found.append(ast.Expr(_call(PASSED, site)))
        if head:
            signs = [each for part in parts if isinstance(part, ast.Compare) for each in part.ops]
            is_held = any(not isinstance(each, (ast.Is, ast.IsNot)) for each in signs)
            is_held |= is_check and not signs
            found.insert(0, ast.Expr(_call(STEP, is_held)))
        return found


_HEAD = (ast.expr, ast.withitem)


def _call(name: str, argument: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(argument)], [])


def _is_check(node: ast.stmt) -> bool:
    """Return whether a statement is an assert, or calls ``self.assertEqual`` and the like.

    Raises:
        Unrunnable: It is true whatever the program does.
    """
    if isinstance(node, ast.Assert):
        if _is_always_true(node.test):
            raise Unrunnable(f"line {node.lineno}: always true: {ast.unparse(node)[:80]}")
        return not isinstance(node.test, ast.Constant) or not node.test.value
    calls = [node.value] if isinstance(node, ast.Expr) else []
    if isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items]
    return any(_method(call).startswith("assert") for call in calls)


def _is_fail(node: ast.stmt) -> bool:
    """Return whether a statement says that the tests should not have come here."""
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    if isinstance(node, ast.Expr):
        return _method(node.value) == "fail"
    return isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node)


def _method(node: ast.expr) -> str:
    """Return the name of the method of ``self`` that an expression calls; empty for none."""
    called = node.func if isinstance(node, ast.Call) else None
    is_own = isinstance(called, ast.Attribute) and _is_name(called.value)
    return called.attr if is_own and called.value.id == "self" else ""  # type: ignore[union-attr]


def _is_always_true(test: ast.expr) -> bool:
    """Return whether a test is no constant, and true whatever the program does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(
            _is_always_true(each) or (isinstance(each, ast.Constant) and bool(each.value))
            for each in test.values
        )
    if isinstance(test, ast.Compare):
        return not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(test))
    return isinstance(test, _DISPLAYS)


def with_entry_point(text: str, name: str) -> str:
    """Return tests in HumanEval's style, ``def check(candidate)``, with their call at the end."""
    is_called = re.search(r"^check\(", text, re.MULTILINE)
    is_check = re.search(r"^def check\(", text, re.MULTILINE)
    if is_called or not is_check or not _CALLED.fullmatch(name):
        return text
    return f"{text}\n\ncheck({name})"


def with_setup(setup: str, text: str) -> str:
    """Return tests that know what stands before the program; unchanged where nothing does.

    It is stored in front of the tests, in one text; the tests see it too.
    """
    if not setup.strip() or _SETUP_END in text:
        return text
    return f"{setup.strip()}\n{_SETUP_END}\n{text}"


def setup_of(text: str) -> str:
    """Return what stands before the program; empty where nothing does."""
    setup, end, _ = text.partition(f"{_SETUP_END}\n")
    return setup if end else ""
