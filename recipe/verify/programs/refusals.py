"""Tests that would be silently true, and why each is refused.

A check is an assert, or an assert method of a ``unittest.TestCase``.
"""

from __future__ import annotations

import ast

# What a program prints, draws or reads stays in its own process.
_ELSEWHERE = {"redirect_stdout", "redirect_stderr", "stdout", "stdin", "mock", "doctest"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Unrunnable(ValueError):
    """The tests cannot show that a program is right; the message says why and what to do."""


def refuse(tree: ast.Module, runs: set[str]) -> None:
    """Go through the tests.

    Args:
        tree: The tests.
        runs: Names of the functions and classes that are called after the tests' own lines.

    Raises:
        Unrunnable: A check never runs, is always true, or its failure would be dropped.
    """
    for node in ast.walk(tree):
        _refuse_node(node)
    _refuse_what_never_runs(tree, runs)


def always(test: ast.expr) -> bool | None:
    """Return what an expression is whatever the program does, if that can be seen from its text."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, (ast.Tuple, ast.List, ast.Set)):
        has_items = any(not isinstance(item, ast.Starred) for item in test.elts)
        return True if has_items else None if test.elts else False
    if isinstance(test, ast.Dict):
        return bool(test.keys)
    if isinstance(test, (ast.Lambda, ast.GeneratorExp)):
        return True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = always(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = {always(value) for value in test.values}
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(test, ast.Compare) and not _has_names(test):
        return bool(eval(compile(ast.Expression(test), "tests.py", "eval"), {"__builtins__": {}}))
    return None


def _has_names(node: ast.AST) -> bool:
    unknown = (ast.Name, ast.Call, ast.BinOp, ast.Attribute, ast.Subscript, ast.JoinedStr)
    return any(
        isinstance(each, (*unknown, ast.Await, ast.comprehension)) for each in ast.walk(node)
    )


def _is_test_class(node: ast.ClassDef) -> bool:
    is_case = any("TestCase" in ast.unparse(base) for base in node.bases)
    return is_case or node.name.startswith("Test")


def is_run(node: ast.stmt) -> bool:
    """Return whether a test runner would call it: ``def test_f()`` or a class of tests."""
    if isinstance(node, ast.ClassDef):
        return _is_test_class(node) and any(
            isinstance(each, _FUNCTIONS) and each.name.startswith("test") for each in node.body
        )
    is_test = isinstance(node, _FUNCTIONS) and node.name.startswith("test")
    return is_test and _holds_check(node)


def is_check(node: ast.AST) -> bool:
    """Return whether a node is an assert, or a call such as ``self.assertEqual(...)``."""
    if isinstance(node, ast.Assert):
        return True
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return False
    return called.value.id == "self" and (called.attr.startswith("assert") or called.attr == "fail")


def _holds_check(node: ast.AST) -> bool:
    return any(is_check(each) for each in ast.walk(node))


def is_fail(node: ast.AST) -> bool:
    """Return whether a node says that the tests should not have come here."""
    if isinstance(node, ast.Assert):
        return always(node.test) is False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_check(node):
        return node.func.attr == "fail"
    return isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node)


def _refuse_what_never_runs(tree: ast.Module, runs: set[str]) -> None:
    """Raise ``Unrunnable`` for checks that nothing leads to."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for owner in (tree, *classes):
        is_run_class = not isinstance(owner, ast.ClassDef) or owner.name in runs
        seen: set[str] = set()
        for node in owner.body:
            if not isinstance(node, _FUNCTIONS) or not _holds_check(node):
                continue
            place = f"line {node.lineno}: {node.name}"
            if is_run_class and node.name.startswith(("test", "setUp", "tearDown")):
                if node.name in seen:
                    raise Unrunnable(f"{place} is defined twice; rename one")
                seen.add(node.name)
                if node.name not in used:
                    _refuse_signature(node, place, num_given=int(owner is not tree))
            elif node.name not in used:
                raise Unrunnable(
                    f"{place} holds checks and nothing calls it; end the tests with"
                    f" {node.name}(...), given the program's function where it takes one"
                )


def _refuse_signature(
    node: ast.FunctionDef | ast.AsyncFunctionDef, place: str, *, num_given: int
) -> None:
    wanted = [*node.args.posonlyargs, *node.args.args][num_given:]
    if len(wanted) > len(node.args.defaults) or None in node.args.kw_defaults:
        raise Unrunnable(f"{place} takes arguments that nobody gives; write plain asserts")
    own = (each for part in node.body for each in ast.walk(part))
    if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own):
        raise Unrunnable(f"{place} is a generator, whose body never runs; write plain asserts")


def _refuse_node(node: ast.AST) -> None:
    """Raise ``Unrunnable`` for what would make the tests silently true."""
    place = f"line {getattr(node, 'lineno', 0)}"
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Compare):
            raise Unrunnable(f"{place}: a comparison without assert, whose result is dropped")
        text = node.value.value if isinstance(node.value, ast.Constant) else ""
        if isinstance(text, str) and ">>>" in text:
            raise Unrunnable(f"{place}: examples in a text are never run; write asserts")
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.alias):
        name = node.name.split(".")[-1]
    if name == "suppress":
        raise Unrunnable(f"{place}: suppress drops failures; let them end the test")
    if name in _ELSEWHERE:
        raise Unrunnable(
            f"{place}: {name}: what the program prints or reads stays in its own process; test"
            " what it returns"
        )
    if isinstance(node, (ast.If, ast.While)) and always(node.test) is False:
        if any(map(_holds_check, node.body)):
            raise Unrunnable(f"{place}: the checks below this line never run")
    if isinstance(node, ast.Try):
        _refuse_swallowing(node)


def expects_failure(node: ast.Try) -> bool:
    """Return whether reaching the end of the ``try`` is a failure, so that a handler has to run."""
    return any(is_fail(e) for part in [*node.body, *node.orelse] for e in ast.walk(part))


def _refuse_swallowing(node: ast.Try) -> None:
    """Refuse an ``except`` that drops a failure; it may note one, or be the expected way."""
    inside = [each for part in node.body for each in ast.walk(part)]
    has_checks = any(is_check(each) and not is_fail(each) for each in inside)
    only_imports = all(isinstance(part, (ast.Import, ast.ImportFrom)) for part in node.body)
    for handler in node.handlers:
        caught = ast.unparse(handler.type) if handler.type else ""
        if has_checks and "AssertionError" in caught:
            raise Unrunnable(
                f"line {handler.lineno}: a failed assert is caught; let it end the test"
            )
        if not (expects_failure(node) or only_imports or _has_effect(handler)):
            raise Unrunnable(
                f"line {handler.lineno}: this except drops failures; end the try with"
                " `assert False` where an exception is expected"
            )


def _has_effect(handler: ast.ExceptHandler) -> bool:
    keeps = (ast.Assert, ast.Raise, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
    inside = [each for part in handler.body for each in ast.walk(part)]
    return any(
        isinstance(each, keeps)
        or (isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute))
        for each in inside
    )
