"""A line is read strictly, and a benchmark is complete or refused."""

import pytest
from response_rows import parsed, response, responses, row, rows, turn_facts, write_rows

from recipe.run.errors import DataError
from recipe.study.evaluation.responses import (
    append_responses,
    complete_groups,
    read_responses,
    resume_responses,
)


def test_a_line_becomes_a_response_without_its_text():
    read = response("p-7", 2, "wrong", extracted="12", later="unknown field")
    assert (read.id, read.sample, read.score, read.extracted) == ("p-7", 2, 0.0, "12")
    assert not hasattr(read, "response")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample": "0"}, r"the field `sample`: .* a valid integer, got '0'"),
        ({"sample": True}, r"the field `sample`: .* a valid integer, got True"),
        ({"is_truncated": 0}, r"the field `is_truncated`: .* a valid boolean, got 0"),
        ({"id": None}, r"the field `id`: .* a valid string, got None"),
        ({"reason": "right"}, r"the field `reason`: .* 'correct', 'wrong', .* got 'right'"),
        ({"score": 0.0}, r"score=0.0 and reason='correct' contradict each other"),
        ({"score": 0.5}, r"score=0.5 and reason='correct' contradict each other"),
    ],
)
def test_a_field_that_is_no_field_is_named(changes, message):
    with pytest.raises(DataError, match=message):
        response(**changes)


def test_a_missing_field_is_named():
    line = row()
    del line["seed"]
    with pytest.raises(DataError, match="the field `seed`: Field required$"):
        parsed(line)


@pytest.mark.parametrize(
    ("name", "value"), [("acc_t1", 7.0), ("unchanged", -0.5), ("delta", -1.5), ("delta", None)]
)
def test_facts_of_a_conversation_that_cannot_be_are_named(name, value):
    facts = turn_facts(0.0, 1.0) | {name: value}
    if value is None:
        del facts[name]
    with pytest.raises(DataError, match=rf"here is not a response: the field `facts`: {name} is"):
        response("a", 0, "correct", facts=facts)
    assert response("a", 0, "correct", facts=turn_facts(1.0, 0.0)).facts["delta"] == -1.0


def test_a_line_that_is_no_object_is_refused():
    with pytest.raises(DataError, match="^here is not a response: Input should be an object$"):
        parsed([1])


@pytest.mark.parametrize(
    ("left", "right"),
    [("0.5", r"\frac{1}{2}"), (r"\dfrac12", "1/2"), ("1,000", "1000"), ("$x+1$", "x + 1")],
)
def test_answers_that_are_spelled_differently_share_a_key(left, right):
    keys = [response(extracted=text).answer_key for text in (left, right)]
    assert keys[0] == keys[1] != ""


@pytest.mark.parametrize("reason", ["no_answer", "malformed", "truncated", "timeout", "error"])
def test_an_answer_that_was_not_graded_has_no_key(reason):
    assert response(reason=reason, extracted="12").answer_key == ""


def test_groups_are_in_order_whatever_the_order_of_the_lines():
    lines = responses(b="+-", a="-+")
    groups = complete_groups(reversed(lines), 2, benchmark="toy", ids=["b", "a"])
    assert list(groups) == ["a", "b"]
    assert [[each.sample for each in group] for group in groups.values()] == [[0, 1], [0, 1]]


def test_an_empty_benchmark_is_refused():
    with pytest.raises(DataError, match="toy: no responses, so nothing to report"):
        complete_groups([], 4, benchmark="toy")


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        ({"a": "+-", "b": "+"}, "toy: responses that are missing .*: 1 problems, such as 'b'"),
        ({"a": "+-"}, "toy: responses that are missing .*: 1 problems, such as 'b'"),
        (
            {"a": "+-", "b": "+--"},
            r"beyond the expected 2 in samples/toy\.jsonl .*: 1 problems, such as 'b'",
        ),
        ({"a": "+-", "b": "+-", "c": "+-"}, "not in the benchmark: 1 problems, such as 'c'"),
    ],
)
def test_a_benchmark_has_every_pair_and_no_other(verdicts, message):
    with pytest.raises(DataError, match=message):
        complete_groups(responses(**verdicts), 2, benchmark="toy", ids=["a", "b"])


def test_a_pair_that_is_there_twice_is_refused():
    twice = [*responses(a="+-"), *responses(a="+")]
    with pytest.raises(DataError, match="appear twice or beyond .*: 1 problems, such as 'a'"):
        complete_groups(twice, 2, benchmark="toy")


def test_responses_come_back_by_benchmark_and_id(tmp_path):
    (tmp_path / "samples").mkdir()
    assert resume_responses(tmp_path) == {}
    append_responses(tmp_path, "a/b", rows("a/b", p="+-"))
    append_responses(tmp_path, "c", rows("c", p="+"))
    assert resume_responses(tmp_path) == {("a/b", "p"): {0, 1}, ("c", "p"): {0}}


def test_half_a_surrogate_pair_in_a_text_can_be_read_again(tmp_path):
    (tmp_path / "samples").mkdir()
    append_responses(tmp_path, "toy", [row(extracted="\ud800x", response="\udc80")])
    assert [each.extracted for each in read_responses(tmp_path)["toy"]] == ["?x"]


def test_what_a_full_disk_left_of_a_line_does_not_spoil_the_next_one(tmp_path):
    path = write_rows(tmp_path, "toy", rows("toy", p="+"))
    path.write_bytes(path.read_bytes() + b'{"benchmark": "to')
    append_responses(tmp_path, "toy", rows("toy", q="-"))
    assert [each.id for each in read_responses(tmp_path)["toy"]] == ["p", "q"]


@pytest.mark.parametrize("line", [b"not json", b"{]", b"\x80"])
def test_a_broken_line_in_the_middle_is_named(tmp_path, line):
    path = write_rows(tmp_path, "a", rows("a", p="+-"))
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, line, second, b""]))
    with pytest.raises(DataError, match=r"a.jsonl: line 2 is not a response: Invalid JSON"):
        resume_responses(tmp_path)
