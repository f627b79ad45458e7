"""The teacher and the offline hints tool against vLLM's own server with the embedded model."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from engines import BASE, ROOT, environment

from recipe.hint.hints.base import TeacherSampling, TeacherSettings
from recipe.hint.hints.teacher import Teacher
from recipe.hint.prompt import Texts
from recipe.problems.columns import read_problems, write_rows
from recipe.run.devices import has_gpu
from recipe.study.offline_hints import main

pytestmark = pytest.mark.slow

START_S = 180.0
KEY_NAME, KEY = "TINY_SERVER_KEY", "word-for-the-test"
# The `vllm` program of the CPU build asks for metadata of a package named vllm, and finds none.
SERVE = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(BASE)]
OPTIONS = "--served-model-name tiny --host 127.0.0.1 --dtype float32 --enforce-eager".split()
OPTIONS += "--distributed-executor-backend uni --max-model-len 512 --max-num-seqs 32".split()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    if has_gpu():
        pytest.skip("needs vLLM's CPU build")
    log = tmp_path_factory.mktemp("server") / "log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*SERVE, *OPTIONS, "--port", str(port), "--api-key", KEY],
            env=environment(),
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until_up(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def wait_until_up(server: subprocess.Popen, health: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(health, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise AssertionError(f"no server after {START_S:g} s:\n{log.read_text('utf-8')[-3000:]}")


@pytest.fixture(scope="module")
def problems():
    return read_problems(ROOT / "data/tiny/train.parquet")[:12]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY_NAME, KEY)


def ask(url, folder, problems, *, max_tokens=128, **changes):
    settings = TeacherSettings(
        base_url=url, model="tiny", api_key_env=KEY_NAME, cache_dir=str(folder), num_retries=0
    )
    teacher = Teacher(
        replace(settings, **changes), texts=Texts(), sampling=TeacherSampling(max_tokens=max_tokens)
    )

    async def all_of_them():
        return await asyncio.gather(*(teacher.write(each, never) for each in problems))

    return asyncio.run(all_of_them())


async def never(messages, attempt):
    raise AssertionError("the policy must not be asked")


def test_the_ladders_of_a_served_model_are_read_and_paid_once(url, tmp_path, problems):
    results = ask(url, tmp_path, problems)
    statuses = [each.status for each in results]
    # The base model writes a set of hints in most of its replies, and has three attempts.
    assert statuses.count("ok") >= 9
    assert set(statuses) <= {"ok", "parse_failed"}
    assert all(len(each.hints_L) == 3 for each in results if each.status == "ok")
    assert all(0 < each.tokens <= 3 * 128 for each in results)

    again = ask(url, tmp_path, problems)
    assert [each.hints_L for each in again] == [each.hints_L for each in results]
    assert [each.calls for each in again] == [0] * len(problems)


def test_the_command_writes_hint_columns(url, tmp_path, capsys):
    rows = pq.read_table(ROOT / "data/tiny/train.parquet").slice(0, 6).to_pylist()
    write_rows(rows, tmp_path / "in.parquet")
    files = [str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")]
    asked = ["--model", "tiny", "--url", url, "--api-key-env", KEY_NAME]
    main([*files, *asked, "--per-prompt", "2", "--max-tokens", "128"])
    written = pq.read_table(tmp_path / "out.parquet").to_pylist()
    counts = [len(row["hint_level_3"]) for row in written]
    assert f" {sum(counts)} ok" in capsys.readouterr().out and sum(counts) >= 8  # of 6 * 2
    assert [row["problem"] for row in written] == [row["problem"] for row in rows]
