"""Which source of hints a run gets, and the number of levels that goes with it."""

import pytest

from recipe.hint.adapter.hint_sources import build_source
from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.hints.solution_prefix import SolutionPrefix
from recipe.hint.prompt import Texts
from recipe.hint.settings import build_method, read_settings

TRAINER = {"hint_accuracy_min_threshold": 0.1, "hint_accuracy_max_threshold": 0.35}


def source_and_levels(method, **hint):
    settings = read_settings(hint)
    built = build_method({"method": method, **TRAINER}, settings)
    return build_source(settings, Texts(), built), built.max_level


@pytest.mark.parametrize(
    ("method", "kind", "levels"),
    [
        ("sage", SelfGenerated, 3),
        ("sage-light", SelfGenerated, 3),
        ("fixed", SelfGenerated, 3),
        ("ghpo", SolutionPrefix, 3),
        ("scaf", Increments, 12),
    ],
)
def test_without_a_setting_each_method_has_its_own_source(method, kind, levels):
    source, max_level = source_and_levels(method)
    assert (type(source), max_level) == (kind, levels)


def test_grpo_has_no_source():
    assert source_and_levels("grpo", source="dataset") == (None, 0)


@pytest.mark.parametrize("method", ["sage", "sage-light", "fixed", "ghpo"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("self_generated", SelfGenerated),
        ("dataset", DatasetHints),
        ("solution_prefix", SolutionPrefix),
    ],
)
def test_every_method_takes_every_source(method, name, kind):
    assert isinstance(source_and_levels(method, source=name)[0], kind)


def test_the_levels_of_prefixes_are_the_ratios():
    prefix = {"ratios": [0.2, 0.4, 0.6, 0.8]}
    assert source_and_levels("sage", source="solution_prefix", prefix=prefix)[1] == 4
