"""What is kept of one prompt: excerpts with limits, whatever the texts are."""

import json
import random

import pytest
from fakes import Numbered, problem, run

from recipe.hint.methods.sage import Sage
from recipe.hint.methods.scaf import Scaf
from recipe.hint.record import verdict_counts
from recipe.hint.samples import SampleSettings, excerpt, pack_sample
from recipe.hint.schema import Response
from recipe.hint.turns import Place, Round, Sample, Turn, at_level
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict

TEXT_BYTES = SampleSettings().text_bytes
HOSTILE = {
    "a megabyte": "x" * 1_000_000,
    "a megabyte of quotes": '"\\' * 500_000,
    "null bytes": "\0" * 100_000,
    "halves of surrogates": "\ud800\udfff" * 50_000,
    "emoji": "\U0001f600" * 100_000,
    "escape sequences": "\x1b[2J\x9b" * 10_000,
    "line separators": "\u2028\x85\n" * 10_000,
    "digits": "1" * 1_000_000,
    "spaces": "a" + " " * 1_000_000,
}


def answer(extracted="2", *, score=1.0, ignored="", basis="number", **more):
    reason = more.pop("reason", "correct" if score > 0 else "wrong")
    verdict = Verdict(score, reason, extracted, basis, ignored)
    text = more.pop("response", rf"so \boxed{{{extracted}}}")
    turn = Turn((), [], Response([], [], text, False), verdict)
    return turn, more.pop("reward", score)


def tried(*answers, level=0, hint=""):
    turns = tuple(turn for turn, _ in answers)
    done = Round(Sample(at_level(level)), turns, "ok" if level else "none", hint)
    return done, answers


def arguments(groups):
    """Rounds and rewards, as ``pack_sample`` takes them."""
    rewards = {
        Place(number, row): reward
        for number, (_, answers) in enumerate(groups)
        for row, (_, reward) in enumerate(answers)
    }
    return [done for done, _ in groups], rewards


def sample(*groups, item=None):
    return json.loads(pack_sample(item or problem(), *arguments(groups), TEXT_BYTES))


def test_an_excerpt_says_how_much_of_the_middle_is_left_out():
    text = "begin" + "m" * 10_000 + "end"
    short = excerpt(text, 400)
    head, tail = short.split(" [... ")[0], short.split(" ...] ")[1]
    assert head.startswith("begin") and tail.endswith("end")
    assert len(tail) // len(head) == 3
    left_out = int(short.split("[... ")[1].split()[0])
    assert len(head) + left_out + len(tail) == len(text)
    assert excerpt("short", 400) == "short"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_anywhere_leaves_a_sample_bounded_and_readable(text):
    item = Problem(text[:50], (), text, text, text, text)
    groups = [
        tried(
            *(answer(text, ignored=text, response=text, reward=float(row)) for row in range(8)),
            level=level,
            hint=text,
        )
        for level in range(12)
    ]
    packed = pack_sample(item, *arguments(groups), TEXT_BYTES)
    row = json.loads(packed)
    texts = [*(each["response"] for each in row["responses"]), row["problem"], row["answer"]]
    texts += [each["hint"] for each in row["rounds"]]
    assert sum(len(each.encode()) for each in texts) <= 32_768
    assert packed.isascii() and b"\n" not in packed
    assert len(row["rounds"]) + len(row["responses"]) == 12 + 12 * 8


def test_an_excerpt_of_random_text_never_passes_its_limit():
    random_text = random.Random(1)
    for _ in range(200):
        pool = random_text.choice(["ab", '"\\', "\0\x1f", "é€", "\U0001f600\ud800", "a b\n"])
        text = "".join(random_text.choices(pool, k=random_text.randrange(4000)))
        limit = random_text.randrange(200, 3000)
        assert len(excerpt(text, limit).encode("utf-8")) <= limit


def test_equal_verdicts_of_one_round_share_an_entry_and_odd_ones_come_first():
    row = sample(
        tried(answer("3", score=0.0), answer("4", score=0.0), answer("3", score=0.0)),
        tried(answer("2"), answer("2 apples", ignored="apples"), level=1, hint="add"),
    )
    assert [(each["round"], each["rows"], each["why"]) for each in row["responses"]] == [
        (1, [1], ["ignored"]),
        (0, [0, 2], []),
        (0, [1], []),
        (1, [0], []),
    ]
    assert row["rounds"] == [
        {"prompt": "bare", "level": 0, "hint_status": "none", "hint": ""},
        {"prompt": "hinted", "level": 1, "hint_status": "ok", "hint": "add"},
    ]
    assert (row["answer"], row["problem"]) == ("2", "What is 1+1?")


def test_scores_that_json_does_not_know_are_written_as_text():
    row = sample(tried(answer(score=float("nan"), reward=float("inf"))))
    assert (row["responses"][0]["score"], row["responses"][0]["reward"]) == ("nan", "inf")


def test_a_record_counts_the_verdicts_of_all_rounds():
    groups = [
        tried(answer("3", score=0.0, basis="text"), answer("", score=0.0, basis="none")),
        tried(
            answer("2"),
            answer("2 or 3", basis="text", ignored="or 3"),
            answer("2"),
            level=1,
        ),
    ]
    assert verdict_counts(arguments(groups)[0]) == {
        "bases": {"text": 2, "none": 1, "number": 2},
        "num_ignored": 1,
    }


def test_a_visit_shows_every_level_it_tried_and_which_rollouts_train():
    outcome = run(Sage(max_level=3), {0: [0, 0], 1: [0, 0], 2: [0, 1], 3: [1, 1]})
    row = json.loads(outcome.sample)
    assert [(each["level"], each["hint"]) for each in row["rounds"]] == [
        (0, ""),
        (1, "think"),
        (2, "think. add"),
    ]
    facts = {(each["level"], tuple(each["rows"]), each["trains"]) for each in row["responses"]}
    assert facts == {(0, (0, 1), False), (1, (0, 1), False), (2, (0,), True), (2, (1,), True)}
    assert outcome.record.bases == {"none": 6}


def test_an_injected_rollout_is_shown_as_one_that_trains():
    outcomes = {0: [0, 0, 0, 0], 1: [0] * 4, 2: [1] * 4}
    outcome = run(Scaf(max_level=3), outcomes, step=60, source=Numbered(12))
    row = json.loads(outcome.sample)
    trains = {(each["round"], tuple(each["rows"])) for each in row["responses"] if each["trains"]}
    assert trains == {(0, (0, 1, 2)), (2, (0,))}


def test_without_samples_nothing_is_packed_and_the_counts_stay():
    off = SampleSettings(prompts_per_step=0)
    outcome = run(Sage(max_level=3), {0: [0, 1]}, settings={"samples": off})
    assert (outcome.sample, outcome.record.bases) == (b"", {"none": 2})
