"""The commands and settings that the documentation shows are ones that Hydra accepts."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from recipe import REPOSITORY
from recipe.hint.command import choose_hardware, translated
from recipe.hint.methods import METHODS

pytestmark = pytest.mark.slow

# These two hold what was true on a day, under the names of that day.
DATED = {"log.md", "results.md"}
EXAMPLE = "new_method.md"  # its method is registered in unit/methods/test_documented_method.py
PAGES = [
    path
    for path in [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    if path.name not in DATED | {EXAMPLE}
] + [REPOSITORY / "data" / "README.md"]
SETTING = re.compile(r"[+]{0,2}[a-z_][\w.]*=.*", re.DOTALL)
NODES = "hint|trainer|data|actor_rollout_ref|algorithm|critic|reward|ray_kwargs|experiment|hardware"


def shown(page: Path, text: str, start: int) -> str:
    return f"{page.relative_to(REPOSITORY).as_posix()}:{text.count(chr(10), 0, start) + 1}"


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The settings of each command in a code block that reads those of a run."""
    text = page.read_text("utf-8")
    for block in re.finditer(r"```(?:bash)?\n(.*?)```", text, re.DOTALL):
        for line in block[1].replace("\\\n", " ").splitlines():
            if re.search(r"\bhint (train|check|eval|alternate|ask) |main_hint\.py", line):
                words = shlex.split(line, comments=True)
                yield (
                    shown(page, text, block.start()),
                    [word for word in words if SETTING.fullmatch(word)],
                )


def spans(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The settings that a sentence gives with a value."""
    text = page.read_text("utf-8")
    prose = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
    for span in re.finditer(rf"`('?[+]{{0,2}}(?:{NODES})[\w.]*=(?!NAME)[^`]+)`", prose):
        words = shlex.split(span[1])
        if all(SETTING.fullmatch(word) for word in words):
            yield shown(page, prose, span.start()), words


# By their settings: pages repeat each other's.
CASES = {
    " ".join(words): (place, words)
    for page in PAGES
    for place, words in (*commands(page), *spans(page))
}.values()


def test_there_are_commands_and_settings_to_try():
    assert len(CASES) > 100


@pytest.mark.parametrize(
    ("place", "words"), CASES, ids=[f"{place} {' '.join(words)}"[:80] for place, words in CASES]
)
def test_a_documented_command_composes(place, words, composed):
    settings, _ = choose_hardware(translated(words), has_gpu=False)
    config = composed(*settings)
    assert OmegaConf.select(config, "trainer.method") in METHODS
