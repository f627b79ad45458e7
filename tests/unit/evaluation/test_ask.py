"""One problem put to a model: the arguments, the file, the rounds, and what a person sees."""

import asyncio
import json
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from chat_server import completion, served
from fakes import ScriptedEngine, problem
from omegaconf import OmegaConf
from talks import GUIDE, TurnEngine

from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.methods import METHODS
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import HintSettings
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.run.errors import DataError
from recipe.study import evaluate
from recipe.study.ask import (
    ASKED_FILE,
    AskRunner,
    ask,
    asked_lines,
    read_arguments,
    write_question,
)
from recipe.verify.schema import Verdict

NEVER = {0: [0, 0, 0], 1: [0, 0, 1], 2: ["truncated", 1, 1], 3: [1, 1, 1]}
GUIDED = [name for name, each in METHODS.items() if hasattr(each.settings_cls(), "guide")]
HINTED = [name for name, each in METHODS.items() if each.uses_hints]


@pytest.fixture
def files(tmp_path):
    """Validation and training problems; one has a column of its own."""
    rows = [make_row(f"What is {n} + 1?", str(n + 1), row_id=f"n/{n}") for n in range(4)]
    rows[3]["hint_level_1"] = "count on"
    write_rows(rows[:2], tmp_path / "val.parquet")
    write_rows(rows[2:], tmp_path / "train.parquet")
    data = {name: str(tmp_path / f"{name[:-6]}.parquet") for name in ("val_files", "train_files")}
    config = OmegaConf.create({"data": data})
    return SimpleNamespace(config=config, target=tmp_path / "question.parquet")


def question(files, *argv):
    given, _ = read_arguments(argv)
    write_question(given, files.config, files.target)
    [found] = read_problems(files.target)
    return found


def test_a_problem_is_found_by_its_id_in_validation_and_training_files(files):
    assert question(files, "--id", "n/1").text == "What is 1 + 1?"
    assert question(files, "--id", "n/3").answer == "4"
    [row] = pq.read_table(files.target).to_pylist()
    assert row["hint_level_1"] == "count on"  # with all columns that the method may read
    with pytest.raises(DataError, match=r"n/9 is not in .*val.parquet or .*train.parquet"):
        question(files, "--id", "n/9")


def test_a_problem_of_ones_own_has_the_form_of_prepared_ones(files):
    asked = question(files, "--problem", "How many?", "--answer", "7", "--solution", "Count.")
    assert (asked.text, asked.answer, asked.solution) == ("How many?", "7", "Count.")
    assert [turn["role"] for turn in asked.messages] == ["system", "user"]


@pytest.mark.parametrize("argv", [[], ["--id", "1", "--problem", "x"], ["--problem", "x"]])
def test_a_question_that_is_none_ends_in_one_line(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        read_arguments(argv)
    [line] = capsys.readouterr().err.splitlines()
    assert "give --id ID of a problem in a file, or --problem TEXT --answer A" in line


# -- the rounds


def asked(method, outcomes, source=None, **engine):
    levels = 3 if method.uses_hints else 0
    if method.uses_hints and source is None:
        source = SelfGenerated(texts=Texts(), attempts=2, max_level=3)
    engine = ScriptedEngine(outcomes, **engine)
    parts = RolloutParts(method(max_level=levels), source, engine, HintSettings(), Texts())
    return asyncio.run(ask(problem(), parts)), engine


@pytest.mark.parametrize("name", ["sage", "sage-light", "fixed"])
def test_a_method_with_hints_is_asked_at_every_level_whatever_is_right(name):
    # SAGE alone would have stopped at level 1, where one of three is right.
    found, _ = asked(METHODS[name], NEVER)
    assert [(each["level"], len(each["turns"])) for each in found["rounds"]] == [
        *((0, 3), (1, 3)),
        *((2, 3), (3, 3)),
    ]
    hints = [each["hint"] for each in found["rounds"]]
    assert hints == ["", "think", "think. add", "think. add. carry"]
    assert [turn["score"] for turn in found["rounds"][2]["turns"]] == [0.0, 1.0, 1.0]


def test_a_method_with_turns_is_asked_for_its_turns():
    engine = TurnEngine({0: [0, 1, 1], 1: [1, 1, 0]}, group_size=3)
    parts = RolloutParts(METHODS["score"](), None, engine, HintSettings(), Texts())
    found = asyncio.run(ask(problem(), parts))
    assert [each["prompt"] for each in found["rounds"]] == ["bare", "revise"]
    assert [turn["parent"] for turn in found["rounds"][1]["turns"]] == [[0, 0], [0, 1], [0, 2]]
    lines = asked_lines(found)
    start = lines.index("solver, revise: 2 of 3 right")
    assert [line for line in lines[start:] if " x " in line] == ["  2 x correct", "  1 x wrong"]


def test_the_lines_show_the_hint_and_one_answer_of_each_verdict_right_ones_first():
    lines = asked_lines(asked(METHODS["sage"], NEVER)[0])
    start = lines.index("level 2: 2 of 3 right")
    shown = ["level 2: 2 of 3 right", "  hint", "    think. add", "  2 x correct", "    2:1"]
    assert lines[start : start + 5] == shown
    found, _ = asked(METHODS["grpo"], {0: [0, 0, "truncated", 0, "no_answer", 1]})
    lines = asked_lines(found)
    assert [line for line in lines if " x " in line] == [
        *("  1 x correct", "  3 x wrong", "  1 x truncated", "  1 x no_answer")
    ]
    assert lines[-1] == "  1 x no_answer" and lines[-2] == "  1 x truncated"


def test_text_of_a_model_cannot_act_on_the_terminal():
    found, _ = asked(METHODS["grpo"], {0: [1, 1, 1]}, texts={0: "\x1b[2Jgone\rover"})
    assert json.loads(json.dumps(found)) == found
    shown = "\n".join(asked_lines(found))
    assert "\x1b" not in shown and "\r" not in shown
    assert r"\x1b[2Jgone" in shown


# -- the driver: a method gets the parts that it trains with


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


@pytest.fixture
def driven(composed, tmp_path, monkeypatch):
    """Ask one problem with these settings; returns ``asked.json`` and the teacher's requests."""
    file = tmp_path / "question.parquet"
    write_rows([make_row("What is 1+1?", "2", solution="Count on.", row_id="q")], file)

    def driven(engine, script, *settings):
        engine.grader, worker = Grader(), SimpleNamespace(tokenizer=None)
        start = contextmanager(lambda *_: (yield engine, worker))
        monkeypatch.setattr(evaluate, "served_engine", start)
        with served(script) as server:
            config = composed(
                *("hardware=laptop", f"hint.run_dir={tmp_path}", f"data.val_files=[{file}]"),
                *(f"hint.teacher.base_url={server.url}", "hint.teacher.model=m"),
                *(f"hint.teacher.cache_dir={tmp_path / 'answers'}", *settings),
            )
            OmegaConf.resolve(config)
            AskRunner().run(config)
        return json.loads((tmp_path / ASKED_FILE).read_text()), server.requests

    return driven


@pytest.mark.parametrize("name", GUIDED)
@pytest.mark.parametrize("role", ["guide", "solver"])
def test_a_teacher_speaks_in_its_role(name, role, driven):
    node = METHODS[name].settings_node
    engine = Engine({turn: [0, 0] for turn in (0, 1, GUIDE)})
    found, requests = driven(
        *(engine, lambda body, number: completion("the teacher says: right")),
        *(f"trainer.method={name}", f"{node}.{role}=teacher", f"{node}.train_{role}=false"),
    )
    rounds = [each["turns"] for each in found["rounds"] if each["role"] == role]
    spoken = [turn["response"] for turns in rounds for turn in turns]
    assert len(spoken) == len(requests) > 0
    assert set(spoken) == {"the teacher says: right"}


@pytest.mark.parametrize("name", HINTED)
def test_a_teacher_writes_the_hints(name, driven):
    found, requests = driven(
        *(ScriptedEngine({level: [0, 0] for level in range(13)}), None),
        *(f"trainer.method={name}", "hint.source=teacher", "hint.style=paper"),
    )
    assert len(requests) == 1
    hints = [each["hint"] for each in found["rounds"][1:]]
    assert hints and hints[-1] == "think, add, carry"
