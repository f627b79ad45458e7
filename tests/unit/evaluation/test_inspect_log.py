"""An evaluation as a log of inspect_ai, read by inspect's own reader."""

import json
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from pathlib import Path

import psutil
import pytest
from response_rows import row, write_rows

from recipe.problems.columns import read_problems
from recipe.run.whole_file import file_sha256
from recipe.study.export import main
from recipe.study.results import write_results

ROOT = Path(__file__).parents[3]
DATA = ROOT / "data/tiny/val_easy.parquet"
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


@pytest.fixture(scope="module")
def inspect_bin(tmp_path_factory):
    """Programs of an environment that has inspect_ai, 128 MB, in front of this one's packages."""
    folder = tmp_path_factory.mktemp("inspect") / "env"
    venv.create(folder, with_pip=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "project.pth").write_text("\n".join([sysconfig.get_path("purelib"), str(ROOT)]))
    lock = ROOT / "requirements/inspect.lock"
    run([folder / "bin/pip", "install", "-q", "--no-deps", "-r", lock])
    return folder / "bin"


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_inspects_reader_finds_questions_responses_targets_scores_and_settings(words, inspect_bin):
    run([inspect_bin / "python", "-m", "recipe.hint.main_export", *words])
    read = f"from inspect_ai.log import *; print(read_eval_log({words[-1]!r}).model_dump_json())"
    log = json.loads(run([inspect_bin / "python", "-c", read]))
    kept = log["eval"]
    assert (log["status"], kept["task"], kept["model"]) == ("success", "easy", "org/policy")
    assert kept["model_generate_config"]["temperature"] == 0.6
    assert kept["metadata"]["files"] == {DATA.name: file_sha256(DATA)}
    assert log["results"]["scores"][0]["metrics"]["avg"]["value"] == 0.5
    right, cut = log["samples"]
    assert (right["id"], right["epoch"], right["target"]) == (PROBLEM.id, 1, PROBLEM.answer)
    assert [each["content"] for each in right["input"]] == [
        each["content"] for each in PROBLEM.messages
    ]
    assert right["output"]["choices"][0]["message"]["content"] == "\u2028 \\boxed{1}"
    score = right["scores"]["verifier"]
    assert (score["value"], score["answer"], score["explanation"]) == (1.0, "1", "correct")
    assert right["metadata"]["basis"] == "text" and right["metadata"]["seed"] == 1
    assert [each["content"] for each in cut["messages"][-2:]] == ["3", "some text"]
    assert cut["output"]["choices"][0]["stop_reason"] == "max_tokens"
    assert cut["scores"]["verifier"]["value"] == 0.0


@pytest.mark.slow
@pytest.mark.long
def test_inspects_viewer_serves_the_log_to_this_machine(words, inspect_bin, tmp_path):
    run([inspect_bin / "python", "-m", "recipe.hint.main_export", *words])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [inspect_bin / "python", "-m", "inspect_ai", "view", "start", "--port", str(port)]
    viewer = subprocess.Popen([*command, "--log-dir", str(tmp_path)])
    try:
        page = ask(f"http://127.0.0.1:{port}/")
        assert "<title>Inspect View</title>" in page
        [listed] = json.loads(ask(f"http://127.0.0.1:{port}/api/logs"))["files"]
        assert listed["name"].endswith("/out.eval")
        [served] = [
            each for each in psutil.Process(viewer.pid).net_connections() if each.status == "LISTEN"
        ]
        assert served.laddr.ip == "127.0.0.1"
    finally:
        viewer.terminate()
        viewer.wait(30)


def ask(address, limit_s=60):
    end = time.monotonic() + limit_s
    while True:
        try:
            with urllib.request.urlopen(address, timeout=limit_s) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def test_without_the_library_the_command_says_what_to_install(words, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "inspect_ai is missing: docs/evaluation.md" in capsys.readouterr().err
