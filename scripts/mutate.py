"""Change one place of recipe/hint at a time, in a copy of the commit, and see if a fast test fails.

A first run notes which test executes which line. Faults are drawn among the executed lines and
shown to those tests. One that survives shows that a test is missing, or that nothing changed.
"""

import argparse
import ast
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import coverage

PAIRS = [(ast.Lt, ast.GtE), (ast.LtE, ast.Gt), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)]
FLIPPED = {a: b for pair in [*PAIRS, (ast.Is, ast.IsNot)] for a, b in (pair, pair[::-1])}
PYTEST = ["pytest", "-q", "-p", "no:cacheprovider"]
NOT_CODE = ("annotation", "returns", "decorator_list")
TESTS_S, LIMIT_S = 120, 600  # of tests for a fault; and of waiting for one that hangs: caught
seconds, failed = collections.defaultdict(float), set()


# The first run loads this file as a plugin of pytest, for these three.
def pytest_runtest_logstart(nodeid):
    recording = coverage.Coverage.current()
    assert recording is not None, "run under coverage"
    recording.switch_context(nodeid)


def pytest_runtest_logreport(report):
    seconds[report.nodeid] += report.duration
    failed.update([report.nodeid] * report.failed)


def pytest_sessionfinish():
    passed = {name: time for name, time in seconds.items() if name not in failed}
    Path(os.environ["COVERAGE_FILE"]).with_suffix(".json").write_text(json.dumps(passed))


def faults(node):
    """Yield (operator, node to replace, its new text) for every change of one AST node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in FLIPPED:
            new = ast.Compare(node.left, [FLIPPED[type(op)]()], node.comparators)
            yield "flip comparison", node, f"({ast.unparse(new)})"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield "integer + 1", node, f"({value + 1})"
            yield "integer - 1", node, f"({value - 1})"
        case ast.BoolOp():
            new = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            yield "and / or", node, f"({ast.unparse(new)})"
        case ast.If() | ast.While() | ast.IfExp():
            yield "negate condition", node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Return(value=ast.expr()):
            yield "return None", node, "return None"
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred):
            new = ast.Call(node.func, [second, first, *rest], node.keywords)
            yield "swap arguments", node, f"({ast.unparse(new)})"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Assign():
            yield "delete statement", node, "pass"


def code_nodes(node):
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if name not in NOT_CODE else []:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from code_nodes(child)


def candidates(root, path):
    """Yield the faults of a file; ``key`` finds one again in another commit, by its line's text."""
    text, seen = path.read_text("utf-8"), collections.Counter()
    for node in code_nodes(ast.parse(text)):
        for operator, place, new in faults(node):
            shown = text.splitlines()[place.lineno - 1].strip()
            seen[shown, operator] += 1
            span = (place.lineno, place.col_offset, place.end_lineno, place.end_col_offset)
            fault = {"file": str(path.relative_to(root)), "span": span, "new": new}
            yield fault | {"key": [operator, shown, seen[shown, operator]]}


def tests_for(fault, watched, times):
    """Yield the tests that execute the line, then the rest of their files, quickest first."""
    path = next((name for name in watched.measured_files() if name.endswith(fault["file"])), "")
    by_line = watched.contexts_by_lineno(path)
    at = by_line.get(fault["span"][0], [])
    # What runs only at import is shown to all tests that execute something of the module.
    direct = set(at if at != [""] else sum(by_line.values(), [])) & times.keys()
    files, total = {name.split("::")[0] for name in direct}, 0.0
    beside = {name for name in times if name.split("::")[0] in files} - direct
    for name in [each for part in (direct, beside) for each in sorted(part, key=times.get)]:
        if not total or total + times[name] < TESTS_S:
            yield name
        total += times[name]


def python(root, *arguments, limit_s=None, **environment):
    paths = f"{root}:{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"} | environment
    run = {"cwd": root, "env": env, "timeout": limit_s, "stdout": subprocess.DEVNULL}
    return subprocess.run([sys.executable, "-m", *arguments], **run).returncode


def end_of(fault, root, tests):
    """Run the tests on the tree with one fault -> "caught" or "survived"."""
    path, (first, start, last, end) = root / fault["file"], fault["span"]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)  # AST columns count bytes
    lines[first - 1] = lines[first - 1][:start] + fault["new"].encode() + lines[last - 1][end:]
    path.write_bytes(b"".join(lines[:first] + lines[last:]))
    (root / ".tests").write_text("\n".join(tests))
    try:
        is_caught = python(root, *PYTEST, "-x", f"@{root}/.tests", limit_s=LIMIT_S)
        return "caught" if is_caught else "survived"
    except subprocess.TimeoutExpired:
        return "caught"
    finally:
        path.write_bytes(whole)


def run(args, root):
    commit = subprocess.run(["git", "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", root], input=commit, check=True)
    args.out.mkdir(parents=True, exist_ok=True)
    data = (args.out / "tests.coverage").absolute()
    if not data.exists():
        watch = ["coverage", "run", f"--source={root}/recipe/hint", "-m", *PYTEST, "-p", "mutate"]
        fast = "not gpu and not slow and not long"
        python(root, *watch, "-m", fast, *args.tests, COVERAGE_FILE=str(data))
    watched, times = coverage.CoverageData(data), json.loads(data.with_suffix(".json").read_text())
    watched.read()
    (root / ".tests").write_text("\n".join(times))
    if python(root, *PYTEST, "--collect-only", f"@{root}/.tests"):
        sys.exit(f"{data} names tests that this commit lacks; delete it")
    files = sorted((root / "recipe/hint").rglob("*.py"))
    drawn = [fault for path in files for fault in candidates(root, path)]
    random.Random(args.seed).shuffle(drawn)
    if args.again:
        known = [each["key"] for each in json.loads(args.again.read_text())]
        drawn = [each for each in drawn if each["key"] in known]
    done = []
    for fault in drawn:
        tests, (operator, text, _) = list(tests_for(fault, watched, times)), fault["key"]
        if len(done) == args.n or not tests or any(each["key"] == fault["key"] for each in done):
            continue
        done.append(fault | {"end": end_of(fault, root, tests), "tests": len(tests)})
        (args.out / "faults.json").write_text(json.dumps(done, indent=1))
        place = f"{fault['file']}:{fault['span'][0]}"
        print(f"{done[-1]['end']:8} {place} {operator}: {text}  [{fault['new'][:60]}]", flush=True)
    caught = sum(each["end"] == "caught" for each in done)
    print(f"{len(done)} faults: {caught} caught, {len(done) - caught} survived")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("-n", type=int, default=40, help="faults to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files or folders of tests")
    parser.add_argument("--out", type=Path, default=Path("outputs/mutate"), help="notes and faults")
    parser.add_argument("--again", type=Path, help="a faults.json: the same ones, by their text")
    with tempfile.TemporaryDirectory() as folder:
        run(parser.parse_args(), Path(folder))
