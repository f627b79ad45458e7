"""The house rules that no linter knows: sizes, names, imports, files that must parse."""

import ast
import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from recipe.hint.methods import METHODS, every_method, get_method

ROOT = Path(__file__).resolve().parents[2]
HINT = ROOT / "recipe" / "hint"

# `python recipe/hint/main_hint.py` puts recipe/hint first on sys.path, before these libraries.
SHADOWING = set(
    "platform types code math queue random statistics datasets tokenizers tests scripts".split()
)
NOT_OURS = {"outputs", "wandb", "build", "dist", "node_modules"}


def files(*suffixes: str) -> Iterator[Path]:
    """The checkout's files with one of these endings, hidden and generated folders left out."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name for name in subfolders if name == ".ci" or not (name[0] == "." or name in NOT_OURS)
        ]
        yield from (Path(folder, name) for name in names if name.endswith(suffixes))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in files(".py"):
        if path.is_relative_to(ROOT / "recipe"):
            yield path, ast.parse(path.read_text("utf-8"), filename=str(path))


def is_main(path: Path) -> bool:
    return path.parent == HINT and path.name.startswith("main_")


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_no_python_file_is_longer_than_600_lines():
    assert [f"{shown(p)}: {n}" for p in files(".py") if (n := lines_of(p)) > 600] == []


def test_only_main_files_and_worker_processes_are_runnable():
    guard = re.compile(r"^if __name__ == ", re.MULTILINE)
    offenders = [
        shown(path)
        for path, _ in package_trees()
        if guard.search(path.read_text("utf-8"))
        and not (is_main(path) or path.name.endswith("_process.py"))
    ]
    assert offenders == []


def test_nothing_beside_the_runnable_files_shadows_a_library():
    assert [shown(path) for path in HINT.iterdir() if path.stem in SHADOWING] == []


def test_the_package_wins_over_the_bare_recipe_folder_of_another_wheel():
    # A folder without __init__.py loses to any regular package of the same name on the path.
    import recipe

    assert Path(recipe.__file__ or "").parent == ROOT / "recipe"


def test_every_yaml_file_parses_without_a_repeated_key():
    found = [*files(".yaml", ".yml", ".cff"), ROOT / ".pre-commit-config.yaml"]
    found += (ROOT / ".github").rglob("*.yml")
    assert [f"{shown(path)}: {problem}" for path in found if (problem := yaml_problem(path))] == []


def yaml_problem(path: Path) -> str:
    try:
        for document in yaml.compose_all(path.read_text("utf-8"), Loader=yaml.SafeLoader):
            if document is not None and (twice := repeated_key(document)):
                return f"key {twice!r} appears twice"
    except yaml.YAMLError as error:
        return str(error).replace("\n", " ")
    return ""


def repeated_key(node: yaml.Node) -> str:
    """The first key that a mapping holds twice (YAML keeps the last one silently), or nothing."""
    if isinstance(node, yaml.SequenceNode):
        return next(filter(None, map(repeated_key, node.value)), "")
    if not isinstance(node, yaml.MappingNode):
        return ""
    keys = [key.value for key, _ in node.value]
    twice = next((str(key) for key in keys if keys.count(key) > 1), "")
    return twice or next(filter(None, (repeated_key(value) for _, value in node.value)), "")


def test_a_repeated_key_is_noticed_at_any_depth():
    assert repeated_key(yaml.compose("a: [{b: 1, c: 2, b: 3}]", Loader=yaml.SafeLoader)) == "b"
    assert repeated_key(yaml.compose("a: {b: 1}\nb: 1", Loader=yaml.SafeLoader)) == ""


def test_scripts_are_short_and_stop_at_the_first_error():
    scripts = [*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci" / "run"]
    assert [f"{shown(p)}: {n}" for p in scripts if (n := lines_of(p)) > 40] == []
    careless = [
        shown(path)
        for path in scripts
        if not path.name.startswith("_") and "\nset -euo pipefail\n" not in path.read_text("utf-8")
    ]
    assert careless == []


@pytest.mark.parametrize("name", ["cpu", "gpu", "real", "dev", "docs"])
def test_a_lock_file_holds_exact_versions_each_package_once(name):
    text = (ROOT / "requirements" / f"{name}.lock").read_text("utf-8")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.+!]+", pin)] == []
    names = [re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins]
    assert sorted(names) == sorted(set(names))


def test_the_two_profiles_agree_with_the_development_tools():
    dev = pins_of("dev")
    for profile in ("cpu", "gpu"):
        shared = pins_of(profile).keys() & dev.keys()
        assert {k: pins_of(profile)[k] for k in shared} == {k: dev[k] for k in shared}


def pins_of(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text("utf-8").lower()
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))


def test_relative_links_in_the_documentation_lead_to_a_file_and_a_heading():
    assert [problem for path in files(".md") for problem in broken_links(path)] == []


def broken_links(path: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{shown(path)}: {link} does not exist"
        elif anchor and target.suffix == ".md" and anchor not in headings(target):
            yield f"{shown(path)}: {link} names no heading of {target.name}"


def headings(path: Path) -> set[str]:
    """Anchors as GitHub makes them: lower case, punctuation dropped, spaces to hyphens."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_a_link_to_a_missing_file_or_heading_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setitem(broken_links.__globals__, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One: two\n[a](#one-two) [b](#three) [c](gone.md) `[d](x)` [e](https://e.org)"
    )
    assert list(broken_links(page)) == [
        "page.md: #three names no heading of page.md",
        "page.md: gone.md does not exist",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_whose_table_gives_each_of_its_settings_and_their_defaults(name):
    method = get_method(name)
    settings = method.settings_cls()
    wanted = {
        f"{method.settings_node}.{item.name}": json.loads(json.dumps(getattr(settings, item.name)))
        for item in fields(settings)
    }
    text = (ROOT / "docs" / "methods" / f"{name}.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `?(.*?)`? \|", text, re.MULTILINE))
    given = {key: yaml.safe_load(rows[key]) for key in wanted.keys() & rows.keys()}
    assert given == wanted


# Words of the language too, and a data set of the name of a method.
ORDINARY = {"fixed", "score"}
DATA_SETS = {("recipe/problems/prepare.py", "ghpo")}


def test_only_a_methods_own_file_and_the_registry_know_a_method_by_name():
    nodes = [method.settings_node.removeprefix("hint.") for method in every_method().values()]
    parts = [re.escape(f"{node}.") for node in nodes if node not in ("", "trainer")]
    names = sorted(METHODS.keys() - ORDINARY, key=len, reverse=True)
    known = re.compile(rf"(?<![\w-])(?:(?:{'|'.join(names)})(?![\w-])|(?:{'|'.join(parts)})\w)")
    offenders = [
        f"{shown(path)}:{text.lineno}: {match[0]}"
        for path, tree in package_trees()
        if not path.is_relative_to(HINT / "methods")
        for text in texts_of(tree)
        if (match := known.search(text.value)) and (shown(path), match[0]) not in DATA_SETS
    ]
    assert offenders == []


def texts_of(tree: ast.Module) -> Iterator[ast.Constant]:
    """String constants of a file, docstrings left out."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}


def test_no_test_asserts_seconds():
    """Clocks bound a wait for something that must come; how long it took is nobody's promise."""
    offenders = []
    for path in files(".py"):
        if not path.is_relative_to(ROOT / "tests"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Assert):
                continue
            names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if names & (CLOCKS | {"seconds", "elapsed", "duration_s"}):
                offenders.append(f"{shown(path)}:{node.lineno}")
    assert offenders == []


def test_the_code_map_is_under_450_lines_and_its_names_are_there():
    whole = ["rollout.py"]
    parts = {
        "adapter/worker.py": "roll_out",
        "hints/self_generated.py": "SelfGenerated",
        "methods/sage.py": "Sage",
    }
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    total = sum(len((HINT / name).read_text("utf-8").splitlines()) for name in whole)
    for place, name in parts.items():
        nodes = ast.walk(ast.parse((HINT / place).read_text("utf-8")))
        [node] = [each for each in nodes if getattr(each, "name", None) == name]
        assert isinstance(node, ast.ClassDef | ast.AsyncFunctionDef) and node.end_lineno
        total += node.end_lineno - node.lineno + 1
    assert total < 450
    for name, place in (
        ("HintWorker.roll_out", "adapter/worker.py"),
        ("PromptRollout.run", "rollout.py"),
        ("Sage.react", "methods/sage.py"),
        ("PromptRollout._write_hints", "rollout.py"),
        ("SelfGenerated", "hints/self_generated.py"),
    ):
        assert f"`{name}`" in page
        source = (HINT / place).read_text("utf-8")
        assert all(re.search(rf"(class|def) {part}\b", source) for part in name.split("."))
