"""Settings classes are filled from plain mappings, strictly, with errors of one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from recipe.run.errors import ConfigError
from recipe.run.typed import read_typed, read_yaml


@dataclass(frozen=True)
class Inner:
    ratios: tuple[float, ...] = (0.5,)
    limit: int | None = None

    def __post_init__(self):
        if self.limit == 0:
            raise ConfigError("a.inner.limit=0 limits nothing; give null")


@dataclass(frozen=True)
class Outer:
    level: int = 1
    share: float = 0.0
    mode: Literal["cut", "skip"] = "cut"
    body: dict = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


def test_values_have_the_types_of_the_class():
    node = {"share": 1, "body": {"k": [1, None]}, "inner": {"ratios": [1, 0.5], "limit": None}}
    assert read_typed(Outer, node, "a") == Outer(
        share=1.0, body={"k": [1, None]}, inner=Inner(ratios=(1.0, 0.5))
    )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"levl": 1}, "a.levl is not a setting"),
        ({"inner": {"ratio": 1}}, "a.inner.ratio is not a setting"),
        ({"level": True}, "a.level=True must be "),
        ({"level": "1"}, "a.level='1' must be "),
        ({"mode": None}, "a.mode=None must be 'cut' or 'skip'"),
        ({"inner": {"ratios": [0.5, "x"]}}, "a.inner.ratios[1]='x' must be "),
        ({"inner": {"limit": 0}}, "a.inner.limit=0 limits nothing; give null"),
    ],
    ids=str,
)
def test_what_the_class_does_not_take_is_refused_in_one_line(node, message):
    with pytest.raises(ConfigError) as refused:
        read_typed(Outer, node, "a")
    assert str(refused.value).startswith(message)


def test_a_key_that_is_there_twice_is_refused_with_its_line():
    text = "title: A\narms:\n  grpo: {seeds: [1]}\n  sage: {}\n  grpo: {seeds: [2]}\n"
    with pytest.raises(ValueError, match="^grpo is there twice below line 2$"):
        read_yaml(text)
