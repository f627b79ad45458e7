"""A row to grade keeps the spelling of its numbers, and says itself why it cannot be graded."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint import main_grade
from recipe.run.typed import read_json, spelled_float, write_json
from recipe.verify.rows import read_row

MATHS = {"id": "m", "kind": "maths", "answer": "4", "response": r"\boxed{4}"}
CHOICE = {"id": "c", "kind": "choice", "answer": "B", "response": r"\boxed{(a)}"}
PROGRAM = {"kind": "program", "answer": "assert f()", "response": ""}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**MATHS, "answer": " "}, "answer is empty; give the gold answer"),
        ({**CHOICE, "answer": ""}, "answer is empty; give the gold answer"),
        ({**PROGRAM, "answer": "\n"}, "answer is empty; give the gold answer"),
        ({**CHOICE, "answer": "AB"}, "answer='AB' must be one letter, for kind=choice"),
        ({**CHOICE, "answer": 2}, "answer='2' must be one letter, for kind=choice"),
        ({**MATHS, "is_truncated": "false"}, "is_truncated='false' must be true or false"),
        ({**MATHS, "is_truncated": 1}, "is_truncated=1 must be true or false"),
    ],
)
def test_what_no_verifier_can_use_is_told(fields, message):
    row = read_row(json.dumps(fields).encode(), 3)
    assert (row.item, row.message) == (None, f"line 3: {message}")


@pytest.mark.parametrize(("value", "is_cut"), [(True, True), (False, False), (None, False)])
def test_a_row_says_whether_it_was_cut(value, is_cut):
    item = read_row(json.dumps({**MATHS, "is_truncated": value}).encode(), 1).item
    assert item.is_truncated is is_cut


def run(folder, text, name="out.jsonl"):
    """The exit code and the output file of the command on one text."""
    (folder / "in.jsonl").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main_grade.main([str(folder / "in.jsonl"), str(folder / name), "--workers", "1"])
    return ended.value.code, folder / name


SPELLED = ["12345678901234567890.5", "0.10000000000000000000001", "1.50", "-0.0", "1E+3", "4.2e-7"]
SPELLED += ["1e22", "123456789012345678901234567890"]


def test_numbers_are_graded_and_written_as_they_are_spelled(tmp_path):
    lines = [
        f'{{"kind": "maths", "response": "\\\\boxed{{{each.lower()}}}", "answer": {each}, '
        f'"more": {{"n": [{each}, null]}}}}'
        for each in SPELLED
    ]
    code, out = run(tmp_path, "\n".join(lines))
    graded = out.read_text().splitlines()
    assert (code, [json.loads(line)["reason"] for line in graded]) == (0, ["correct"] * 8)
    assert [line.partition(', "score"')[0] + "}" for line in graded] == lines
    assert run(tmp_path, out.read_text(), "again.jsonl")[1].read_text() == out.read_text()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(SPELLED).map(float),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
)


@given(json_values)
def test_any_json_is_written_as_it_was_read(value):
    text = json.dumps(value)
    assert write_json(read_json(text, spelled_float)) == text


def test_what_is_nested_hundreds_deep_is_graded_too(tmp_path):
    deep = "[" * 400 + "1.5" + "]" * 400
    code, out = run(tmp_path, json.dumps(MATHS)[:-1] + f', "deep": {deep}}}')
    assert code == 0
    assert deep in out.read_text()


def test_an_output_that_is_named_so_is_packed_with_equal_bytes(tmp_path):
    text = (json.dumps(MATHS) + "\n") * 3
    plain, packed, again = (
        run(tmp_path, text, name)[1] for name in ("out.jsonl", "out.jsonl.gz", "again.jsonl.GZ")
    )
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == again.read_bytes()
