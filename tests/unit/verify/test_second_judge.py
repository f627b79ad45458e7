"""The second judge is math-verify in a process of its own; disagreements are written down."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future

import pytest

from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item, Verdict
from recipe.verify.second_judge import SECOND, AuditLog, grade, opinion, question

HANGS = Item(r"\boxed{9^{9^{9}}}", "1")
RIGHT, WRONG = Verdict(1.0, "correct", "5"), Verdict(0.0, "wrong", "5")


class Scripted:
    """A pool whose second judge says ``verdict`` at once, or raises."""

    def __init__(self, verdict=WRONG, error=None):
        self.verdict = verdict
        self.error = error
        self.asked = []

    def submit(self, items):
        self.asked += items
        future: Future = Future()
        if self.error is None:
            future.set_result([self.verdict] * len(items))
        else:
            future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("response", "answer", "reason"),
    [
        (r"\boxed{1}, then \boxed{\frac{2}{4}}", "0.5", "correct"),
        (r"\boxed{2}, then \boxed{3", "2", "wrong"),
        (r"\boxed{(x+1)^2}", "$x^2+2x+1$", "correct"),
        (r"\boxed{43}", r"\boxed{42}", "wrong"),
        ("2", "2", "error"),  # no box: nothing to have an opinion on
        (r"\boxed{2}", "", "error"),
        (r"\boxed{" + "1" * 5000 + "}", "1" * 5000, "error"),  # cut: read on neither side
    ],
)
def test_the_second_judge_reads_the_last_box(response, answer, reason):
    assert grade(Item(response, answer)).reason == reason


def test_the_second_judge_has_no_opinion_on_other_kinds():
    assert grade(Item(r"\boxed{B}", "B", kind="choice")).reason == "error"


def test_what_cannot_be_told_is_not_asked():
    item = Item(r"so \boxed{5}", "4")
    assert question(item, RIGHT) == item
    assert question(item, Verdict(0.0, "timeout", "5")) is None
    assert question(item, Verdict(0.0, "no_answer")) is None
    assert question(item, Verdict(1.0, "correct", "5", "function")) is None
    assert question(item._replace(kind="choice"), RIGHT) is None
    assert question(item._replace(kind="program"), RIGHT) is None
    # Judged without a box, as the options allow: the second judge gets the text in one.
    assert question(Item("so $5$", "4"), RIGHT).response == r"\boxed{5}"


def test_opinions_compare_right_with_wrong():
    assert (opinion(RIGHT, WRONG), opinion(WRONG, WRONG)) == ("disagrees", "agrees")
    assert opinion(RIGHT, Verdict(0.0, "timeout")) == "none"


def test_only_disagreements_are_written_with_both_verdicts(tmp_path):
    path = tmp_path / "new folder" / "audit.jsonl"
    log = AuditLog(path, Scripted(WRONG).submit)
    item = Item(r"so \boxed{5}", "4")
    done = []
    for name, verdict in (("agrees", WRONG), ("undecided", Verdict(0.0, "timeout")), ("p7", RIGHT)):
        log.check(item, verdict, name=name, then=lambda name=name: done.append(name))
    assert done == ["agrees", "undecided", "p7"]
    assert log.disagreements == 1
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {
            "id": "p7",
            "kind": "maths",
            "answer": "4",
            "extracted": "5",
            "verdict": {"score": 1.0, "reason": "correct"},
            "second": {"score": 0.0, "reason": "wrong"},
            "response_end": r"so \boxed{5}",
        }
    ]


def test_a_second_judge_that_fails_keeps_no_verdict_back(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl", Scripted(error=VerifierError("no memory")).submit)
    done = []
    log.check(Item(r"\boxed{5}", "4"), RIGHT, name="p", then=lambda: done.append("p"))
    assert (done, log.disagreements) == (["p"], 0)


def test_the_audit_of_a_pool_changes_no_verdict(tmp_path):
    path = tmp_path / "audit.jsonl"
    # R and r are two radii for the verifier, and one symbol for math-verify.
    items = [Item(r"\boxed{2r}", "2R"), Item(r"\boxed{3}", "3"), Item(r"\boxed{B}", "B")]
    with VerifierPool(1) as plain, VerifierPool(1, audit_path=path) as audited:
        ids = ["radius", "three", "letter"]
        assert audited.grade_many_blocking(items, ids) == plain.grade_many_blocking(items)
        assert (audited.disagreements, plain.disagreements) == (1, 0)
    [row] = [json.loads(line) for line in path.read_text().splitlines()]
    assert (row["id"], row["verdict"]["reason"], row["second"]["reason"]) == (
        "radius",
        "wrong",
        "correct",
    )


def test_a_second_judge_that_hangs_is_ended_and_keeps_no_verdict_back(tmp_path):
    with VerifierPool(1, 1.5, grade_path=SECOND) as pool:
        [alone] = pool.grade_many_blocking([HANGS])
        assert alone.is_ungraded
    with VerifierPool(1, 1.5, audit_path=tmp_path / "audit.jsonl") as pool:
        log = pool._audit
        done = threading.Event()
        log.check(HANGS, RIGHT, name="p", then=done.set)
        assert done.wait(60)
        assert log.disagreements == 0


def test_a_closed_pool_leaves_no_second_judge(tmp_path):
    before = threading.active_count()
    pool = VerifierPool(1, audit_path=tmp_path / "audit.jsonl")
    pool.grade_many_blocking([Item(r"\boxed{3}", "4")])
    pool.close()
    assert threading.active_count() == before


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="audit_path=.*cannot be written.*name another file"):
        VerifierPool(1, audit_path=tmp_path)


def test_a_disk_that_takes_no_line_is_told_once_at_the_end_and_keeps_no_verdict_back(caplog):
    log = AuditLog("/dev/full", Scripted(WRONG).submit)
    done = []
    for name in ("p1", "p2"):
        log.check(
            Item(r"\boxed{5}", "4"), RIGHT, name=name, then=lambda name=name: done.append(name)
        )
    assert (done, log.disagreements) == (["p1", "p2"], 0)
    assert len(caplog.records) == 1
    told = "/dev/full: 2 disagreements .* could not be written: No space left on device"
    with pytest.raises(VerifierError, match=told):
        log.close()
    log.close()


def test_the_error_of_a_block_hides_that_of_its_audit():
    with pytest.raises(KeyError), VerifierPool(1, audit_path="/dev/full") as pool:
        pool._audit._ask = Scripted(WRONG).submit
        pool.grade_many_blocking([Item(r"\boxed{3}", "3")])
        raise KeyError


def test_a_line_that_was_cut_is_not_joined_with_the_next(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"id": "whole"}\n{"id": "cu')
    log = AuditLog(path, Scripted(WRONG).submit)
    log.check(Item(r"\boxed{5}", "4"), RIGHT, name="next", then=lambda: None)
    names = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert names == ["whole", "next"]
