"""Write the site's pages into OUT: the repository's, the generated ones, the files they link to."""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from recipe import REPOSITORY
from recipe.hint.methods import every_method

DOCS = REPOSITORY / "docs"
SETTINGS = REPOSITORY / "recipe/hint/config/hint_trainer.yaml"
COPIED = (DOCS / "figures", DOCS / "site")
SPECIAL = {SETTINGS: "reference/settings.md", REPOSITORY / "README.md": "start.md"}
API = {
    "methods": "hint.methods.base hint.turns hint.schema hint.hints.base",
    "credit": "hint.credit.base hint.credit.baselines",
    "verifier": "verify.schema verify.options verify.grading verify.pool verify.rewards",
    "problems": "problems.columns problems.schema",
    "results": "hint.record hint.conversations study.results hint.estimators",
}


def place(path: Path) -> str:
    """Return where the site has a file or folder of the repository."""
    name = path.relative_to(DOCS if path.is_relative_to(DOCS) else REPOSITORY).as_posix()
    is_itself = path.suffix == ".md" or path.parent in COPIED
    return SPECIAL.get(path, name + ("/index.md" if path.is_dir() else "" if is_itself else ".md"))


def linked(text: str, page: Path, wanted: set[Path], to: str = "") -> str:
    """Return a page's text with the links of the site; ``wanted`` gets what they lead to."""

    def moved(match: re.Match[str]) -> str:
        if match[1] is None or re.match(r"[a-z]+:", match[1]):  # code; elsewhere
            return match[0]
        target = (page.parent / (match[1] or page.name)).resolve()
        wanted.add(target)
        return f"]({os.path.relpath(place(target), Path(to or place(page)).parent)}{match[2]})"

    return re.sub(r"```.*?```|`[^`\n]*`|\]\(([^)\s#]*)(#[^)\s]*|)\)", moved, text, flags=re.DOTALL)


def shown(path: Path, wanted: set[Path]) -> str:
    """Return the page of a file or folder."""
    name = path.relative_to(REPOSITORY).as_posix()
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(f"- {each}\n" for each in sorted(os.listdir(path)) if each[0] != "_")
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        form = {"markdown": "{}\n\n", "code": "```python\n{}\n```\n\n"}
        cells = [(form[each["cell_type"]], each["source"]) for each in json.loads(text)["cells"]]
        text = "".join(each.format("".join(lines)) for each, lines in cells)
    elif path.suffix != ".md":
        return f"{head}~~~~~~ {path.suffix[1:] or 'text'}\n{text}\n~~~~~~\n"
    return linked(text, path, wanted)


def settings_page(wanted: set[Path]) -> Iterator[str]:
    """Yield a row for each key of the YAML file with the comment above it, and methods' tables."""
    head = "\n\n| setting | default | meaning |\n|---|---|---|\n"
    yield f"---\nsearch: {{boost: 9}}\n---\n\n# Settings\n\nThe rest is verl's.\n\n## General{head}"
    stack, comment = [], []
    text = SETTINGS.read_text("utf-8").split("\n\n", 2)[2]  # after what is Hydra's
    for said, indent, key, value in re.findall(r"^ *# ?(.*)|^( *)(\w*):? *(.*)$", text, re.M):
        if said:
            comment.append(said.replace("|", "\\|"))
            continue
        stack = [each for each in stack if each[0] < indent] + [(indent, key)]
        if key and (value or comment):
            name = ".<wbr>".join(each for _, each in stack)
            yield f"| <code>{name}</code> | {value and f'`{value}`'} | {' '.join(comment)} |\n"
        comment = []
    for name, method in every_method().items():
        page = DOCS / f"methods/{name}.md"
        own = rf"^\| `{method.settings_node or 'none'}\..*\n"
        if rows := "".join(re.findall(own, page.read_text("utf-8"), re.M)):
            yield f"\n## {name}{head}" + linked(rows, page, wanted, place(SETTINGS))


def help_of(command: Path, *words: str) -> str:
    sys.argv = [*words, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        runpy.run_path(str(command), run_name="__main__")
    return f"```text\n{out.getvalue().replace(command.name, words[0])}```\n"


def commands_page() -> Iterator[str]:
    yield "# Commands\n\nWhat `--help` prints.\n"
    for command in sorted((REPOSITORY / "recipe/hint").glob("main_*.py")):
        name = "hint " + command.stem.removeprefix("main_").replace("hint", "train")
        yield f"\n## {name}\n\n{(text := help_of(command, name))}"
        for word in re.findall(rf"^(?:{name} )?([a-z]+) (?=[A-Z])", text, re.M):
            yield f"\n### {name} {word}\n\n{help_of(command, name, word)}"


if __name__ == "__main__":
    out = Path(sys.argv[1])
    os.environ["COLUMNS"] = "96"
    wanted = {path for each in ("**/*.md", "*.ipynb", "site/*") for path in DOCS.glob(each)}
    wanted |= {REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md"}
    pages: dict[str, str | bytes] = {place(SETTINGS): "".join(settings_page(wanted))}
    pages["reference/commands.md"] = "".join(commands_page())
    for name, modules in API.items():
        told = (f"\n::: recipe.{each}\n" for each in modules.split())
        pages[f"reference/{name}.md"] = f"# {name.capitalize()}\n{''.join(told)}"
    while todo := [path for path in wanted if place(path) not in pages]:
        for path in todo:
            pages[place(path)] = path.read_bytes() if path.parent in COPIED else shown(path, wanted)
    shutil.rmtree(out, ignore_errors=True)
    for name, text in pages.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(text if isinstance(text, bytes) else text.encode())
