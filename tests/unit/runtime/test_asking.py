"""The driver of a question with a scripted model: a method gets the parts that it trains with."""

import asyncio
import json
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from chat_server import ChatServer, completion
from fakes import ScriptedEngine
from omegaconf import OmegaConf
from talks import GUIDE, TurnEngine

from recipe.hint.methods import METHODS
from recipe.problems.columns import make_row, write_rows
from recipe.study import asking
from recipe.verify.schema import Verdict

GUIDED = [name for name, each in METHODS.items() if hasattr(each.settings_cls(), "guide")]
HINTED = [name for name, each in METHODS.items() if each.uses_hints]


class Engine(TurnEngine):
    """Goes by what a text says: a teacher's has no tokens."""

    async def grade(self, problem, responses):
        return [Verdict(float("right" in each.text), "wrong") for each in responses]

    async def leaks(self, problem, responses):
        return [False] * len(responses)


class Grader:
    """Finds no two texts equal, so that no hint leaks."""

    async def grade_many(self, items, ids=None):
        return [Verdict(0.0, "wrong") for _ in items]


@contextmanager
def served(script):
    """A teacher's endpoint in a thread of its own: the driver blocks this one."""
    server, ready, stop = ChatServer(script), threading.Event(), asyncio.Event()
    loops = []

    async def serve():
        loops.append(asyncio.get_running_loop())
        async with server.running():
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def asked(composed, tmp_path, monkeypatch):
    """Ask one problem with these settings; returns ``asked.json`` and the teacher's requests."""
    file = tmp_path / "question.parquet"
    write_rows([make_row("What is 1+1?", "2", solution="Count on.", row_id="q")], file)

    def asked(engine, script, *settings):
        builder = SimpleNamespace(build=lambda *_: engine, grader=Grader())
        started = builder, SimpleNamespace(tokenizer=None), None
        monkeypatch.setattr(asking, "start_replicas", lambda _: started)
        monkeypatch.setattr(asking, "watched", lambda *_: contextmanager(lambda: (yield))())
        with served(script) as server:
            config = composed(
                *("hardware=laptop", f"hint.run_dir={tmp_path}", f"data.val_files=[{file}]"),
                *(f"hint.teacher.base_url={server.url}", "hint.teacher.model=m"),
                *(f"hint.teacher.cache_dir={tmp_path / 'answers'}", *settings),
            )
            OmegaConf.resolve(config)
            asking.AskRunner().run(config)
        return json.loads((tmp_path / asking.ASKED_FILE).read_text()), server.requests

    return asked


@pytest.mark.parametrize("name", GUIDED)
@pytest.mark.parametrize("role", ["guide", "solver"])
def test_a_teacher_speaks_in_its_role(name, role, asked):
    node = METHODS[name].settings_node
    engine = Engine({turn: [0, 0] for turn in (0, 1, GUIDE)})
    found, requests = asked(
        *(engine, lambda body, number: completion("the teacher says: right")),
        *(f"trainer.method={name}", f"{node}.{role}=teacher", f"{node}.train_{role}=false"),
    )
    spoken = [
        turn["response"]
        for each in found["rounds"]
        if each["role"] == role
        for turn in each["turns"]
    ]
    assert len(spoken) == len(requests) > 0
    assert set(spoken) == {"the teacher says: right"}


@pytest.mark.parametrize("name", HINTED)
def test_a_teacher_writes_the_hints(name, asked):
    found, requests = asked(
        *(ScriptedEngine({level: [0, 0] for level in range(13)}), None),
        *(f"trainer.method={name}", "hint.source=teacher", "hint.style=paper"),
    )
    assert len(requests) == 1
    hints = [each["hint"] for each in found["rounds"][1:]]
    assert hints and hints[-1] == "think, add, carry"
