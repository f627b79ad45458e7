"""What models write, and the hint levels that are read from it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.levels_json import parse_hint_levels

GOLDEN = Path(__file__).parents[2] / "golden" / "ladders.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))
REASONS = {"no_object", "missing_level", "empty_level", "malformed"}
COMMANDS = (
    "frac theta sqrt nu beta right left text uparrow underline nabla neq rho tau times to bar "
    "binom forall rightarrow tfrac cdot alpha mathbb sum int begin end notin rangle"
).split()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_reply_gives_the_ladder_or_the_reason_written_beside_it(case):
    found = parse_hint_levels(case["reply"], case.get("max_level", 3))
    if "hints" in case:
        assert found == tuple(case["hints"])
    else:
        assert isinstance(found, str)
        assert found.partition(":")[0] == case["reason"]


def test_an_excerpt_is_the_object_that_failed_and_not_the_prose_before_it():
    found = parse_hint_levels("Here it comes. " * 50 + '{"level_1": "a", "level_2": ' + "x" * 500)
    assert found.partition(": ")[2] == ('{"level_1": "a", "level_2": ' + "x" * 500)[:200]


# A newline, a tab or a form feed may stand before letters that complete the name of a command.
PIECES = st.one_of(
    st.sampled_from([rf"\{name}" for name in COMMANDS]),
    st.sampled_from(["\n", "\t", "\f", "\b", "\r", "\\\\", "\\", '"', "'", "{", "}", "[2]", "$"]),
    st.sampled_from(["u", "eq", "heta", "rac", "ight", "eta", ", ", ": ", '"level_2": "', "```"]),
    st.text(st.characters(exclude_categories=["Cs", "Co"]), max_size=8),
)
# The end of reasoning is the one text a hint cannot hold.
HINTS = (
    st.lists(PIECES, max_size=12)
    .map(lambda pieces: "".join(pieces) + r" so $\alpha = 1$.")
    .filter(lambda hint: "</think>" not in hint)
)
PROSE = st.text(st.characters(exclude_characters="\\{}<"), max_size=30)


@given(
    hints=st.tuples(HINTS, HINTS, HINTS),
    prose=st.tuples(PROSE, PROSE),
    fence=st.sampled_from(["", "```json", "```", "~~~"]),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_properly_escaped_hints_come_back_exactly(hints, prose, fence, is_ascii, indent):
    levels = {f"level_{level}": hint for level, hint in enumerate(hints, 1)}
    written = json.dumps(levels, ensure_ascii=is_ascii, indent=indent)
    reply = f"{prose[0]}\n{fence}\n{written}\n{fence[:3]}\n{prose[1]}"
    assert parse_hint_levels(reply) == hints


UNESCAPED = st.lists(
    st.one_of(
        st.sampled_from([rf"\{name}" for name in COMMANDS]),
        st.sampled_from(["{x}", "x^2", " \\\\ ", "=", r"\,", r"\{a\}", "it's", "\n"]),
    ),
    max_size=10,
).map(lambda pieces: " ".join([r"\sqrt{2}", *pieces, "."]))


@given(hints=st.tuples(UNESCAPED, UNESCAPED, UNESCAPED), comma=st.sampled_from([", ", "\n"]))
def test_commands_written_with_single_backslashes_come_back_exactly(hints, comma):
    members = comma.join(f'"level_{level}": "{hint}"' for level, hint in enumerate(hints, 1))
    assert parse_hint_levels("```json\n{" + members + "}\n```") == hints


@pytest.mark.parametrize("name", COMMANDS)
def test_a_lone_command_survives_in_either_spelling(name):
    hint = rf"use \{name} here"
    for spelled in (hint, hint.replace("\\", "\\\\")):
        reply = f'{{"level_1": "{spelled}", "level_2": "b", "level_3": "c"}}'
        assert parse_hint_levels(reply) == (hint, "b", "c")


@given(
    st.lists(
        st.sampled_from(
            ['"', "'", "“", "”", '"""', "{", "}", "[", "]", ",", ":", "\\", "\n", " ", "level_1"]
            + ["level_2", "level_3", "a", "1", "```", "</think>", "r", "null", "\\u00e9", "\\n"]
        ),
        max_size=60,
    ).map("".join)
)
def test_no_text_raises(text):
    found = parse_hint_levels(text)
    assert isinstance(found, tuple) or found.partition(":")[0] in REASONS
