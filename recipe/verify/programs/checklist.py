"""A text of tests, and the form of it in which every check is counted.

The counted form calls ``BEGIN`` before each check and ``PASSED`` after it; a check that began and
did not pass, or never began, is a failure whatever the tests catch. Tests for which this cannot
be ensured are refused (``recipe.verify.programs.refusals``).
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys

from recipe.verify.programs.refusals import (
    Unrunnable,
    always,
    expects_failure,
    is_check,
    is_fail,
    is_run,
    refuse,
)

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from types import CodeType

# A function, or a method of an object that its call makes: ``Solution().twoSum``.
_CALLED = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*)*")
# Names that no source text can spell.
BEGIN, PASSED, HOLD, RELEASE = ".begin", ".passed", ".hold", ".release"
BUILT, TYPE_OF, SAME = ".built", ".type", ".same"


class Checklist:
    """Tests that can be run.

    Attributes:
        code: Their counted form.
        names: What they take from the program.
        modules: Modules of the standard library that they use without importing them.
        imports: What they import, as (module, name or empty).
        lines: Line of each check that has to pass, by its number.
        runs: Functions and classes of tests, each with its lines, that have to be called after
            ``code`` unless it calls them.
    """

    def __init__(self, tests: str) -> None:
        """Read the tests.

        Raises:
            Unrunnable: They are not Python, or some check in them would never count.
        """
        try:
            tree = ast.parse(tests)
            compile(tests, "tests.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            hint = "; write asserts in the place of >>> lines" if ">>>" in tests else ""
            raise Unrunnable(
                f"the tests are not Python: {' '.join(str(error).split())}{hint}"
            ) from error
        self.names, self.modules = _names(tree, tests)
        self.imports = list(_imports(tree))
        self.runs = [
            (
                str(getattr(node, "name", "")),
                range(node.lineno, (node.end_lineno or node.lineno) + 1),
            )
            for node in tree.body
            if is_run(node)
        ]
        refuse(tree, {name for name, _ in self.runs})
        counter = _Counter(set(self.names))
        counter.visit(tree)
        self.lines = counter.lines
        if not self.lines:
            raise Unrunnable("the tests hold no assert; write at least one")
        if not self.names:
            raise Unrunnable(
                "the tests use nothing of the program; call what it has to define, without import"
            )
        self.code: CodeType = compile(
            ast.fix_missing_locations(tree), "tests.py", "exec", dont_inherit=True
        )


def _names(tree: ast.Module, tests: str) -> tuple[list[str], list[str]]:
    """Return names that the tests take from the program, and modules that they do not import.

    Names that Python has itself keep their meaning, or a program could redefine ``set`` and
    ``all`` to pass; only tests that call one of them and nothing else (``assert sum(1, 2) == 3``)
    mean the program's. The same holds for modules: ``math.isclose`` is that of the library.
    """
    free = _free_names(tests)
    used_as: dict[str, set[str]] = {name: set() for name in free}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used_as.get(node.value.id, set()).add(node.attr)
            node.value.is_owner = True  # type: ignore[attr-defined]
    bare = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not hasattr(node, "is_owner")
    }
    own = {name for name in free if not hasattr(builtins, name)}
    modules = {name for name in own - bare if _is_module_with(name, used_as[name])}
    if own - modules:
        return sorted(own - modules), sorted(modules)
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    called = {name for name in called & free if not isinstance(getattr(builtins, name), type)}
    if len(called) > 1:
        raise Unrunnable(
            f"the tests call {', '.join(sorted(called))}, which Python has itself, and nothing of"
            " the program; rename the program's"
        )
    return sorted(called), sorted(modules)


@functools.lru_cache(maxsize=64)
def used_names(tests: str) -> frozenset[str]:
    """Return what tests use and do not define; built-ins only where they use nothing else.

    Tests that are not Python use nothing.
    """
    try:
        free = _free_names(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset({name for name in free if not hasattr(builtins, name)} or free)


def _free_names(tests: str) -> set[str]:
    """Return the names that the tests use and never bind at their top."""
    import symtable

    top = symtable.symtable(tests, "tests.py", "exec")
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


def _is_module_with(name: str, attributes: set[str]) -> bool:
    if name not in sys.stdlib_module_names - {"antigravity", "this"} or not attributes:
        return False
    module = __import__(name)
    return all(hasattr(module, attribute) for attribute in attributes)


def _imports(tree: ast.AST) -> list[tuple[str, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise Unrunnable(f"line {node.lineno}: a relative import; import by a full name")
            found += [(node.module or "", alias.name) for alias in node.names]
    return [(module, "" if name == "*" else name) for module, name in found]


def with_entry_point(tests: str, name: str) -> str:
    """Return tests in HumanEval's style, ``def check(candidate)``, with their call at the end."""
    is_called = re.search(r"^check\(", tests, re.MULTILINE)
    is_check = re.search(r"^def check\(", tests, re.MULTILINE)
    if is_called or not is_check or not _CALLED.fullmatch(name):
        return tests
    return f"{tests}\n\ncheck({name})"


class _Counter(ast.NodeTransformer):
    """Writes the calls that count into the tests."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.lines: dict[int, int] = {}
        self._num_sites = 0

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """Count an assert; one that is always false must never begin."""
        if always(node.test):
            what = "a tuple is always true" if isinstance(node.test, ast.Tuple) else "always true"
            raise Unrunnable(f"line {node.lineno}: {what}: {ast.unparse(node)[:80]}")
        site = self._site(node.lineno, has_to_pass=not is_fail(node))
        self.generic_visit(node)
        return [ast.Expr(_call(BEGIN, site)), node, ast.Expr(_call(PASSED, site))]

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt] | ast.stmt:
        """Note that the tests fail by a ``raise AssertionError``."""
        self.generic_visit(node)
        if not is_fail(node):
            return node
        site = self._site(node.lineno, has_to_pass=False)
        return [ast.Expr(_call(BEGIN, site)), node]

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        """Count an expected exception: one of the handlers has to be entered."""
        is_expected = bool(node.handlers) and expects_failure(node)
        self.generic_visit(node)
        if is_expected:
            site = self._site(node.lineno)
            for handler in node.handlers:
                handler.body[:0] = [ast.Expr(_call(name, site)) for name in (BEGIN, PASSED)]
        return node

    def visit_With(self, node: ast.With) -> list[ast.stmt] | ast.stmt:
        """Count ``with self.assertRaises(...)`` when the block is left."""
        is_counted = any(is_check(item.context_expr) for item in node.items)
        for item in node.items:
            if is_check(item.context_expr):
                super().generic_visit(item.context_expr)
            else:
                item.context_expr = self.visit(item.context_expr)
        node.body = [each for part in node.body for each in _listed(self.visit(part))]
        if not is_counted:
            return node
        site = self._site(node.lineno)
        return [ast.Expr(_call(BEGIN, site)), node, ast.Expr(_call(PASSED, site))]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Count ``self.assertEqual(...)``; mark what the tests build by a capitalised name."""
        if is_check(node):
            self._refuse_empty(node)
            site = self._site(node.lineno, has_to_pass=not is_fail(node))
            self.generic_visit(node)
            return _between(_call(BEGIN, site), _held(node), _call(PASSED, site))
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        if node.func.id in self.names and node.func.id[:1].isupper():
            return _call(BUILT, node)
        if node.func.id == "type" and len(node.args) == 1:
            return _call(TYPE_OF, *node.args)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Hold what it calls; ask whether two objects of the program are the same one there."""
        calls = any(isinstance(each, ast.Call) for each in ast.walk(node))
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return _held(node) if calls else node
        same = _call(SAME, node.left, node.comparators[0])
        return same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Refuse a class of the tests that derives from one of the program's."""
        self.generic_visit(node)
        if any(isinstance(base, ast.Name) and base.id in self.names for base in node.bases):
            raise Unrunnable(
                f"line {node.lineno}: a class of the tests cannot derive from the program's;"
                " have the program define it"
            )
        return node

    def _refuse_empty(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"):
            if len(node.args) < 2:
                raise Unrunnable(f"line {node.lineno}: {name} checks nothing without a `with`")
        elif name in ("assertTrue", "assert_") and node.args and always(node.args[0]):
            raise Unrunnable(f"line {node.lineno}: this is true whatever the program does")

    def _site(self, line: int, *, has_to_pass: bool = True) -> ast.Constant:
        self._num_sites += 1
        if has_to_pass:
            self.lines[self._num_sites] = line
        return ast.Constant(self._num_sites)


def _held(node: ast.expr) -> ast.expr:
    return _between(_call(HOLD), node, _call(RELEASE))


def _between(before: ast.expr, node: ast.expr, after: ast.expr) -> ast.expr:
    """Return an expression that has the value of the middle one."""
    return ast.Subscript(ast.Tuple([before, node, after], ast.Load()), ast.Constant(1), ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _listed(nodes: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return nodes if isinstance(nodes, list) else [nodes]  # type: ignore[list-item]
