"""An evaluation as a log of inspect_ai, read by inspect's own reader."""

import json
import sys
from pathlib import Path

import pytest
from response_rows import row, write_rows

from recipe.problems.columns import read_problems
from recipe.run.whole_file import file_sha256
from recipe.study.export import main
from recipe.study.results import write_results

DATA = Path(__file__).parents[3] / "data/tiny/val_easy.parquet"
PROBLEM = read_problems(DATA)[0]


@pytest.fixture
def words(tmp_path):
    """The command for an evaluation of one problem: a right response, and a conversation cut."""
    settings = {"model": "org/policy", "num_samples": 2, "temperature": 0.6}
    settings["files"] = {DATA.name: file_sha256(DATA)}
    source, run = PROBLEM.data_source, tmp_path / "easy"
    turns = [*PROBLEM.messages, {"role": "assistant", "content": "3"}]
    lines = [
        row(PROBLEM.id, 0, benchmark=source, response="\u2028 \\boxed{1}", basis="text"),
        row(PROBLEM.id, 1, "truncated", benchmark=source, conversation=turns),
    ]
    write_rows(run / "evaluation", source.replace("/", "__"), lines)
    (run / "evaluation/config.yaml").write_text(json.dumps({"data": {"val_files": [str(DATA)]}}))
    (run / "evaluation/settings.json").write_text(json.dumps(settings))
    write_results(run / "evaluation", {source: [PROBLEM.id]}, settings)
    return ["inspect", str(run), str(tmp_path / "out.eval")]


def test_inspects_reader_finds_questions_responses_targets_scores_and_settings(words):
    library = pytest.importorskip("inspect_ai.log")
    assert main(words) == 0
    log = library.read_eval_log(words[-1])
    assert (log.status, log.eval.task, log.eval.model) == ("success", "easy", "org/policy")
    assert log.eval.model_generate_config.temperature == 0.6
    assert log.eval.metadata["files"] == {DATA.name: file_sha256(DATA)}
    assert log.results.scores[0].metrics["avg"].value == 0.5
    right, cut = log.samples
    assert (right.id, right.epoch) == (PROBLEM.id, 1)  # tiny/easy/...
    assert [each.content for each in right.input] == [each["content"] for each in PROBLEM.messages]
    assert (right.target, right.output.completion) == (PROBLEM.answer, "\u2028 \\boxed{1}")
    score = right.scores["verifier"]
    assert (score.value, score.answer, score.explanation) == (1.0, "1", "correct")
    assert right.metadata["basis"] == "text" and right.metadata["seed"] == 1
    assert [each.content for each in cut.messages[-2:]] == ["3", "some text"]
    assert (cut.output.stop_reason, cut.scores["verifier"].value) == ("max_tokens", 0.0)


def test_without_the_library_the_command_says_what_to_install(words, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "inspect_ai is missing: docs/evaluation.md" in capsys.readouterr().err
