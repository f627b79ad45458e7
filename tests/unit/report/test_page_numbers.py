"""The page's numbers are the run's, in the room that there is, whatever stands in its files."""

import os
import random
from pathlib import Path

from page_runs import metrics, record, write_run

from recipe.hint.record import PromptRecord, RoundRecord
from recipe.hint.turns import Place
from recipe.study.report.page.folder import read_folder
from recipe.study.report.page.render import render_page
from recipe.study.report.page.visits import read_visit


def test_signal_is_counted_inside_each_group():
    rows = [[0, 0], [0, 1]]
    one = record(1, "a", "01", rows=rows)
    assert read_visit(one).has_signal
    # Each alone in its group: verl trains it with its raw reward.
    alone = one | {"groups": ["x", "y"]}
    assert read_visit(alone).has_signal
    assert not read_visit(alone | {"rewards": [0.0, 0.0]}).has_signal


def test_signal_is_that_of_the_metrics():
    for seed in range(300):
        draw = random.Random(seed)
        size = draw.randrange(1, 5)
        found = PromptRecord(
            problem_id="a",
            uid="a-1",
            step=1,
            rounds=(RoundRecord("bare", 0, "none", (0.0,) * size, 0, 10, 0.5),),
            rows=tuple(Place(0, turn) for turn in range(size)),
            rewards=tuple(draw.choice([0.0, 1.0]) for _ in range(size)),
            accuracies=(0.0,) * size,
            groups=tuple(draw.choice("xy") for _ in range(size)) if draw.random() < 0.5 else (),
            is_dropped=draw.random() < 0.1,
        )
        assert read_visit(found.as_json()).has_signal == found.has_signal


def test_steps_that_stand_twice_are_counted_once_and_told(tmp_path):
    rows = [metrics(step) | {"loss": step} for step in (3, 1, 2, 3)]
    run = read_folder(write_run(tmp_path / "run", [], [], [*rows, {"step": 3, "val": 0.5}]))
    assert [(row["step"], row["loss"]) for row in run.rows] == [(1, 1), (2, 2), (3, 3)]
    assert run.rows[2]["val"] == 0.5
    assert run.damaged == {"metrics.jsonl": 1}


def test_half_a_surrogate_pair_in_any_file_is_a_question_mark(tmp_path):
    folder = write_run(tmp_path / "run", [record(1, "a", "01")], [], [metrics(1)])
    (folder / "machine.json").write_text('{"machine": {"\\ud800": "\\udfff"}, "at": ["\\ud800"]}')
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs/fatal.json").write_text('{"message": "no \\ud800"}')
    other = Path(os.fsdecode(os.fsencode(tmp_path) + b"/lieu\xe9"))
    folder.rename(other)
    run = read_folder(other)
    assert run.machine == {"machine": {"?": "?"}, "at": ["?"]}
    assert (run.name, run.failure) == ("lieu?", "no ?")
    render_page([run], {}).encode()
