"""PrefixRL: how its prompts are drawn, and what a response begins with."""

from collections import Counter
from dataclasses import replace

import pytest
from fakes import Numbered, ScriptedEngine, problem, run

from recipe.hint.methods.base import Draws
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.prefix_rl import PrefixRl, PrefixRlSettings
from recipe.hint.schema import ProblemState
from recipe.hint.settings import HintSettings, build_method
from recipe.run.errors import ConfigError


def drawn(visits, *, share=0.25, levels=3, seed=1, problem_id="p"):
    method = PrefixRl(max_level=levels, settings=PrefixRlSettings(share), draws=Draws(seed=seed))
    return method.open(problem(problem_id=problem_id), ProblemState(visits=visits)).level


@pytest.mark.parametrize(
    ("share", "expected"),
    # 1/4 bare, and 3/4 over three levels: all alike. 0.1: 0.9 / 3 = 0.3 each. 0: no bare prompt.
    [(0.25, [0.25] * 4), (0.1, [0.1, 0.3, 0.3, 0.3]), (0.0, [0, 1 / 3, 1 / 3, 1 / 3])],
)
def test_prompts_are_bare_as_often_as_asked_and_prefixes_of_all_lengths_alike(share, expected):
    counts = Counter(drawn(visits, share=share) for visits in range(4000))
    # Four standard errors of a share of 1/4 among 4000: 4 sqrt(3/16 / 4000) = 0.027.
    assert [counts[level] / 4000 for level in range(4)] == pytest.approx(expected, abs=0.027)


def test_a_draw_belongs_to_seed_problem_and_visit():
    def first(**more):
        return [drawn(visits, **more) for visits in range(20)]

    assert first() == first()
    assert first() != first(seed=2)
    assert first() != first(problem_id="q")


def test_a_prefix_is_the_beginning_of_the_response_that_is_graded():
    engine = ScriptedEngine({0: [0, 0], 2: [1, 0]}, texts={2: " and so 2"})
    method = PrefixRl(max_level=3, draws=Draws(seed=6))
    state = ProblemState(visits=1)  # level 2, by tests/golden/traces.json
    outcome = run(method, {}, engine=engine, state=state, source=Numbered(3))
    # Nothing stands between the question and the prefix, in whose place the policy's turn begins.
    assert engine.prompts == ["answer in a boxWhat is 1+1?hint 2"]
    assert [row.turn.messages[-1] for row in outcome.rows] == [
        {"role": "assistant", "content": "hint 2"}
    ] * 2
    assert {row.turn.response.text for row in outcome.rows} == {"hint 2 and so 2"}
    # The prefix's tokens are the prompt's: what trains is what was sampled.
    assert [len(row.turn.response.token_ids_T) for row in outcome.rows] == [3, 3]
    assert outcome.record.accuracies == (1, 0)


def test_any_method_with_hints_may_have_them_begin_the_response():
    engine = ScriptedEngine({0: [0, 0], 1: [1, 0]})
    method = Ghpo(max_level=3, settings=GhpoSettings(cold_start_steps=0))
    settings = {"style": "prefill"}
    run(method, {}, engine=engine, source=Numbered(3), settings=settings)
    bare = "answer in a boxWhat is 1+1?"
    assert engine.prompts == [bare, f"{bare}hint 1"]


@pytest.mark.parametrize("given", [{"conditioning": "unhinted"}, {"logprob_gain_every": 5}])
def test_the_end_of_a_response_is_not_asked_about_without_its_beginning(given):
    for method, style in (("prefix-rl", None), ("ghpo", "prefill")):
        with pytest.raises(ConfigError, match=r"with hint\.style=prefill they must be hinted and"):
            build_method({"method": method}, HintSettings(style=style, **given))
    build_method({"method": "ghpo"}, HintSettings(**given))
    build_method({"method": "grpo"}, replace(HintSettings(style="prefill"), **given))


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_that_leaves_no_prefix_is_refused(share):
    with pytest.raises(ConfigError, match=r"hint\.prefix_rl\.bare_share=.* trainer\.method=grpo"):
        PrefixRlSettings(share)
