"""Reports are read from what a run wrote, and from nothing else."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.run.rows import accuracies, read_rows
from recipe.study.report.runs import read_run
from recipe.study.report.training import draw_learning, training_table


def make_run(folder, method="sage", final=0.5, val_files=()):
    folder.mkdir()
    files = val_files if isinstance(val_files, str) else list(val_files)
    config = {"trainer": {"method": method}, "data": {"val_files": files}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    rows = [{"step": 0, "val-core/tiny/hard/acc/mean@4": 0.0}]
    for step in (1, 2):
        rows.append(
            {
                "step": step,
                "timing_s/step": 3.0,
                "hint/prompts": 16,
                "hint/rollout_tokens": 900.0,
                "hint/tokens": 100.0,
                "hint/zero_signal_after": 0.25,
            }
        )
    rows[-1]["val-core/tiny/hard/acc/mean@4"] = final
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(folder)


def test_the_table_shows_the_last_validation_the_tokens_and_the_minutes(tmp_path):
    lines = training_table([make_run(tmp_path / "a")], "tiny/hard", 200)
    # 2 x (900 + 100) tokens, 2 x 3 s; Wilson for 0.5 of 200: 0.5 +- 0.0686
    assert lines[2] == "| a | sage | 2 | 50.0 % | 43.1 - 56.9 | 2k | 0.1 |"


def test_a_run_with_a_step_whose_line_was_restored_after_a_kill_shows_no_minutes(tmp_path):
    run = make_run(tmp_path / "a")
    run.rows[1].pop("timing_s/step")
    assert "| 2 | 50.0 % | 43.1 - 56.9 | 2k | - |" in training_table([run], "tiny/hard", 200)[2]


def test_the_problems_behind_an_accuracy_are_counted_in_the_validation_files(tmp_path):
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for file, sources in zip(files, (["tiny/hard"] * 3, ["tiny/easy", "tiny/hard"]), strict=True):
        pq.write_table(pa.table({"data_source": sources}), file)
    run = make_run(tmp_path / "a", val_files=list(map(str, files)))
    assert run.num_problems("tiny/hard") == 4
    # Wilson for 0.5 of 4: 0.5 +- 0.35
    assert "| 50.0 % | 15.0 - 85.0 |" in training_table([run], "tiny/hard")[2]


def test_problems_that_cannot_be_counted_have_to_be_given(tmp_path):
    run = make_run(tmp_path / "a", val_files=[str(tmp_path / "gone.parquet")])
    with pytest.raises(DataError, match=r"cannot be counted: .*gone.parquet.*give --problems"):
        training_table([run], "tiny/hard")
    with pytest.raises(
        DataError, match=r"no problem of 'tiny/hard' in its data.val_files \(none\)"
    ):
        make_run(tmp_path / "b").num_problems("tiny/hard")


def test_a_validation_on_a_part_of_the_file_is_not_counted(tmp_path):
    pq.write_table(pa.table({"data_source": ["tiny/hard"] * 3}), tmp_path / "one.parquet")
    run = make_run(tmp_path / "a", val_files=[str(tmp_path / "one.parquet")])
    run.config["data"]["val_max_samples"] = 2
    with pytest.raises(DataError, match="data.val_max_samples=2 problems, .* give --problems"):
        run.num_problems("tiny/hard")


def test_a_validation_file_without_sources_is_named(tmp_path):
    pq.write_table(pa.table({"problem": ["1+1?"]}), tmp_path / "bare.parquet")
    run = make_run(tmp_path / "a", val_files=str(tmp_path / "bare.parquet"))
    with pytest.raises(DataError, match=r"bare.parquet"):
        run.num_problems("tiny/hard")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="is not the folder of a run: metrics.jsonl is missing"):
        read_run(tmp_path)


def test_the_figure_is_an_svg_and_the_same_runs_give_the_same_file(tmp_path):
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", "grpo", 0.0)]
    texts = []
    for name in ("one.svg", "two.svg"):
        draw_learning(runs, "tiny/hard", tmp_path / name)
        texts.append((tmp_path / name).read_text())
    assert texts[0].startswith("<?xml")
    assert texts[0] == texts[1]
    assert "\nL " not in texts[0] and ">sage</text>" in texts[0]


def test_a_figure_without_matplotlib_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DataError, match="a figure needs matplotlib: install it, or leave"):
        draw_learning([make_run(tmp_path / "a")], "tiny/hard", tmp_path / "a.svg")


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path, capsys):
    folders = [tmp_path / place / "run" for place in ("x", "y")]
    for folder in folders:
        folder.parent.mkdir()
        make_run(folder)
    assert main([*map(str, folders), "--problems", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:4]
    assert [line.split(" | ")[0] for line in lines] == [f"| {folder}" for folder in folders]


# -- metrics.jsonl is read in one place, whatever a kill left at its end


def test_rows_come_in_order_and_half_a_last_line_is_none(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step": 1}\n{"step": 2, "ti')
    assert [row["step"] for row in read_rows(path)] == [0, 1]


def test_a_run_that_has_not_begun_has_no_rows(tmp_path):
    assert list(read_rows(tmp_path / "metrics.jsonl")) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "metrics.jsonl: line 2 is not JSON"), ("[]", "line 2 holds a list, expected an object")],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        list(read_rows(path))


def test_accuracies_are_those_of_a_validation_by_source():
    row = {
        "step": 4,
        "val-core/tiny/hard/acc/mean@4": 0.25,
        "val-core/gsm8k/acc/mean@4": 0.5,
        "val-core/gsm8k/acc/best@4/mean": 0.9,
        "val-aux/gsm8k/reward/mean@4": 0.1,
        "critic/score/mean": 0.3,
    }
    assert accuracies(row) == {"gsm8k": 0.5, "tiny/hard": 0.25}
    assert accuracies({"step": 5, "critic/score/mean": 0.3}) == {}
