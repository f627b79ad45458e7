"""Check the fast tests by faults: change one place of recipe/hint at a time and see which fail.

``python scripts/mutate.py -n 40`` needs ``pip install coverage`` and works on a copy of the
committed tree. A first run of the fast tests notes which test executes which line; faults are then
drawn among the executed lines, and each is shown to the tests that execute it, quickest first. A
fault that passes them all has survived: read it, and add the test that it shows to be missing.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLIPS = [(ast.Lt, ast.GtE), (ast.LtE, ast.Gt), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)]
FLIPS += [(ast.Is, ast.IsNot)]
FLIPPED = {a: b for pair in FLIPS for a, b in (pair, pair[::-1])}
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
seconds: dict[str, float] = collections.defaultdict(float)
failed: set[str] = set()


def pytest_runtest_logstart(nodeid: str) -> None:
    """Name the test that executes the next lines; this file is a plugin of the first run."""
    import coverage

    coverage.Coverage.current().switch_context(nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    seconds[report.nodeid] += report.duration
    if report.failed:
        failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    passed = {name: time for name, time in seconds.items() if name not in failed}
    Path(os.environ["COVERAGE_FILE"] + ".json").write_text(json.dumps(passed))


def faults(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield (operator, node to replace, its new text) for every change of one AST node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in FLIPPED:
            new = ast.Compare(node.left, [FLIPPED[type(op)]()], node.comparators)
            yield "flip comparison", node, f"({ast.unparse(new)})"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield "integer + 1", node, str(value + 1)
            yield "integer - 1", node, f"({value - 1})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and / or", node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
        case ast.If() | ast.While() | ast.IfExp():
            yield "negate condition", node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Return(value=ast.expr()):
            yield "return None", node, "return None"
        case ast.Call(args=[first, second, *rest]) if not any(
            isinstance(each, ast.Starred) for each in node.args
        ):
            new = ast.Call(node.func, [second, first, *rest], node.keywords)
            yield "swap arguments", node, f"({ast.unparse(new)})"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Assign():
            yield "delete statement", node, "pass"


def code_nodes(node: ast.AST, line: int) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes below, each with the first line of its statement; not annotations."""
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if name not in ("annotation", "returns", "decorator_list") else []:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                first = child.lineno if isinstance(child, ast.stmt) else line
                yield child, first
                yield from code_nodes(child, first)


def candidates(root: Path, file: str) -> list[dict[str, Any]]:
    text = (root / file).read_text("utf-8")
    lines, found = text.splitlines(), collections.Counter()
    result = []
    for node, statement in code_nodes(ast.parse(text), 0):
        for operator, place, new in faults(node):
            shown = lines[place.lineno - 1].strip()
            found[shown, operator] += 1
            span = (place.lineno, place.col_offset, place.end_lineno, place.end_col_offset)
            fault = {"file": file, "line": place.lineno, "text": shown, "operator": operator}
            # Tells apart the same change made twice to lines of one text.
            fault |= {"which": found[shown, operator], "new": new, "span": span}
            result.append(fault | {"statement": statement})
    return result


def mutated(text: str, fault: dict[str, Any]) -> str:
    lines = text.encode().splitlines(keepends=True)  # AST columns count bytes
    first, start, last, end = fault["span"]
    new = lines[first - 1][:start] + fault["new"].encode() + lines[last - 1][end:]
    return b"".join([*lines[: first - 1], new, *lines[last:]]).decode()


def map_tests(root: Path, data: Path, folders: list[str]) -> None:
    """Run the fast tests once, noting which executes which line and how long each takes."""
    env = os.environ | {"COVERAGE_FILE": str(data), "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPATH"] = f"{root}:{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    watch = ["-m", "coverage", "run", f"--source={root}/recipe/hint", *PYTEST, "-p", "mutate"]
    chosen = ["-m", "not gpu and not slow", "--continue-on-collection-errors", *folders]
    subprocess.run([sys.executable, *watch, *chosen], cwd=root, env=env, check=False)


def show(root: Path, fault: dict[str, Any], tests: list[str], limit_s: float) -> str:
    """Run the tests against one fault and say how it ended."""
    path, names = root / fault["file"], root / ".mutate-tests"
    whole = path.read_text("utf-8")
    env = os.environ | {"PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-B", *PYTEST, "-x", f"@{names}"]
    names.write_text("\n".join(tests))
    path.write_text(mutated(whole, fault), "utf-8")
    try:
        end = subprocess.run(command, cwd=root, env=env, capture_output=True, timeout=limit_s)
        return "survived" if end.returncode == 0 else "caught"
    except subprocess.TimeoutExpired:
        return "caught (time limit)"
    finally:
        path.write_text(whole, "utf-8")


def tests_for(fault: dict[str, Any], watched: Any, times: dict[str, float]) -> list[str]:
    """Return the tests that execute the line, quickest first, and then the rest of their files.

    Those execute it too where a fixture serves a whole file. What runs only at import is seen by
    any test that executes the file.
    """
    [path] = [each for each in watched.measured_files() if each.endswith(fault["file"])] or [None]
    by_line = watched.contexts_by_lineno(path) if path else {}
    at = by_line.get(fault["line"]) or by_line.get(fault["statement"]) or []
    if at == [""]:
        at = [name for names in by_line.values() for name in names]
    direct = set(at) & times.keys()
    files = {name.split("::")[0] for name in direct}
    rest = {name for name in times if name.split("::")[0] in files} - direct
    return sorted(direct, key=times.__getitem__) + sorted(rest, key=times.__getitem__)


def run(args: argparse.Namespace, root: Path) -> None:
    import coverage

    archive = subprocess.run(["git", "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", root], input=archive, check=True)
    data = (args.data or root / ".coverage-tests").absolute()
    if not data.exists():
        map_tests(root, data, args.tests)
    watched = coverage.CoverageData(str(data))
    watched.read()
    times = json.loads(Path(f"{data}.json").read_text())
    files = sorted(str(path.relative_to(root)) for path in root.glob("recipe/hint/**/*.py"))
    drawn = [fault for file in files for fault in candidates(root, file)]
    if args.again:
        drawn = [fault for old in json.loads(args.again.read_text()) for fault in same(old, drawn)]
    else:
        random.Random(args.seed).shuffle(drawn)
    ends, lines = [], set()
    for fault in drawn:
        tests, place = tests_for(fault, watched, times), (fault["file"], fault["line"])
        if not tests or place in lines or (not args.again and len(ends) == args.n):
            continue
        lines.add(place)
        total, within = 0.0, []
        for name in tests:
            total += times[name]
            if within and total > args.tests_s:
                break
            within.append(name)
        end = show(root, fault, within, args.limit_s)
        ends.append(fault | {"end": end, "tests": len(within), "of": len(tests)})
        if args.save:
            args.save.write_text(json.dumps(ends, indent=1))
        told = f"{fault['file']}:{fault['line']} {fault['operator']}: {fault['text']}"
        print(f"{end:9} {told}  [{fault['new'][:60]}]", flush=True)
    survived = sum(each["end"] == "survived" for each in ends)
    print(f"{len(ends) - survived} of {len(ends)} faults caught, {survived} survived")


def same(old: dict[str, Any], drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fault as the tree has it now, in its own file before any other; none if gone."""
    keys = ("text", "operator", "which")
    found = [each for each in drawn if all(each[key] == old[key] for key in keys)]
    return sorted(found, key=lambda each: each["file"] != old["file"])[:1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-n", type=int, default=40, help="faults to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files or folders of tests")
    parser.add_argument("--tests-s", type=float, default=120, help="seconds of tests per fault")
    parser.add_argument("--limit-s", type=float, default=900, help="a fault that hangs is caught")
    parser.add_argument("--data", type=Path, help="keep or reuse the first run's notes here")
    parser.add_argument("--save", type=Path, help="write the faults and their ends as JSON")
    parser.add_argument("--again", type=Path, help="the faults of such a file, found by their text")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(args, Path(folder))


if __name__ == "__main__":
    main()
