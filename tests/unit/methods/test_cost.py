"""The most responses that a prompt rollout takes, per method."""

from dataclasses import fields, replace

import pytest

from recipe.hint.methods import METHODS
from recipe.hint.methods.cost import fewest_responses, most_responses
from recipe.hint.methods.fixed import Fixed
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.methods.sage_light import SageLight
from recipe.hint.methods.scaf import Scaf, ScafSettings
from recipe.hint.methods.score import Score
from recipe.run.errors import ConfigError, HintError


def test_one_group_where_nothing_is_searched():
    for method in (Grpo(), SageLight(max_level=3), Fixed(max_level=3)):
        assert most_responses(method, 8) == 8


def test_one_group_per_level_where_the_ladder_is_climbed():
    assert most_responses(Sage(max_level=3), 8) == (1 + 3) * 8
    assert most_responses(Ghpo(max_level=3), 8) == (1 + 3) * 8
    assert most_responses(Ghpo(max_level=3, settings=GhpoSettings(mode="none")), 8) == 8


def test_probes_and_single_guided_answers_are_counted_as_such():
    # Levels 0, 1 and 2 probed with 2, the last one whole.
    probing = Sage(max_level=3, settings=SearchSettings(probe_n=2))
    assert most_responses(probing, 8) == 3 * 2 + 8
    # 3 tiers in 4 pieces, an answer each.
    scaf = Scaf(max_level=3, settings=ScafSettings(increments=4, rollouts=1))
    assert most_responses(scaf, 8) == 8 + 3 * 4


def test_every_turn_of_a_tree_is_counted():
    assert most_responses(Score(), 8) == 2 * 8
    tree = Mlmt(settings=MlmtSettings(feedbacks=2, refinements=3))
    assert most_responses(tree, 8) == 8 + 16 + 48


def test_where_everything_is_right_a_search_ends_and_later_turns_are_played_all_the_same():
    assert fewest_responses(Sage(max_level=3), 8) == 8
    assert fewest_responses(Score(), 8) == 2 * 8
    assert fewest_responses(Mlmt(settings=MlmtSettings(feedbacks=2)), 8) == (1 + 2 + 2) * 8


MILLIONS = [
    pytest.param(cls, item, id=f"{name} {item.name}")
    for name, cls in METHODS.items()
    for item in fields(cls.settings_cls)
    if isinstance(item.default, int | float) and not isinstance(item.default, bool)
]


@pytest.mark.parametrize(("cls", "item"), MILLIONS)
def test_a_million_in_any_setting_is_counted_or_refused_but_never_played_out(cls, item):
    try:
        settings = replace(cls.settings_cls(), **{item.name: type(item.default)(1_000_000)})
        method = cls(max_level=3 if cls.uses_hints else 0, settings=settings)
        assert most_responses(method, 8) <= 100_000
    except HintError:
        pass


def test_a_prompt_of_too_many_responses_is_refused_by_the_methods_node():
    with pytest.raises(ConfigError, match=r"100,000 responses.*hint\.mlmt"):
        most_responses(Mlmt(settings=MlmtSettings(feedbacks=1_000_000)), 8)
    with pytest.raises(ConfigError, match=r"rollout\.n=1000000000"):
        most_responses(Grpo(), 1_000_000_000)
