"""One problem put to a model: the arguments, the file, the rounds, and what a person sees."""

import asyncio
import json
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest
from chat_server import completion, served
from fakes import ScriptedEngine, problem
from omegaconf import OmegaConf
from talks import GUIDE, TurnEngine

from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.methods import every_method, get_method
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
GUIDED = [name for name, each in every_method().items() if hasattr(each.settings_cls(), "guide")]
HINTED = [name for name, each in every_method().items() if each.uses_hints]


def test_the_problem_is_one_of_a_file_with_all_its_columns_or_ones_own(tmp_path):
    rows = [make_row(f"What is {n} + 1?", str(n + 1), row_id=f"n/{n}") for n in range(4)]
    rows[3]["hint_level_1"] = "count on"
    write_rows(rows[:2], tmp_path / "val.parquet")
    write_rows(rows[2:], tmp_path / "train.parquet")
    files = {f"{name}_files": str(tmp_path / f"{name}.parquet") for name in ("val", "train")}
    target = tmp_path / "question.parquet"

    def question(*argv):
        write_question(read_arguments(argv)[0], OmegaConf.create({"data": files}), target)
        [found] = read_problems(target)
        return found

    assert question("--id", "n/1").text == "What is 1 + 1?"
    assert question("--id", "n/3").answer == "4"
    assert pq.read_table(target).to_pylist()[0]["hint_level_1"] == "count on"
    asked = question("--problem", "How many?", "--answer", "7", "--solution", "Count.")
    assert (asked.text, asked.answer, asked.solution) == ("How many?", "7", "Count.")
    assert [turn["role"] for turn in asked.messages] == ["system", "user"]
    with pytest.raises(DataError, match=r"n/9 is not in .*val.parquet or .*train.parquet"):
        question("--id", "n/9")


@pytest.mark.parametrize("argv", [[], ["--id", "1", "--problem", "x"], ["--problem", "x"]])
def test_a_question_that_is_none_ends_in_one_line(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        read_arguments(argv)
    [line] = capsys.readouterr().err.splitlines()
    assert "give --id ID of a problem in a file, or --problem TEXT --answer A" in line


# -- the rounds


def asked(name, engine):
    cls = get_method(name)
    source = SelfGenerated(texts=Texts(), attempts=2, max_level=3) if cls.uses_hints else None
    method = cls(max_level=3 if cls.uses_hints else 0)
    parts = RolloutParts(method, source, engine, HintSettings(), Texts())
    return asyncio.run(ask(problem(), parts))


@pytest.mark.parametrize("name", ["sage", "sage-light", "fixed"])
def test_a_method_with_hints_is_asked_at_every_level_whatever_is_right(name):
    # SAGE alone would have stopped at level 1, where one of three is right.
    found = asked(name, ScriptedEngine(NEVER))
    rounds = found["rounds"]
    levels = [(each["level"], len(each["turns"])) for each in rounds]
    assert levels == [(0, 3), (1, 3), (2, 3), (3, 3)]
    hints = [each["hint"] for each in rounds]
    assert hints == ["", "think", "think. add", "think. add. carry"]
    lines = asked_lines(found)
    start = lines.index("level 2: 2 x correct, 1 x truncated")
    assert lines[start + 1 : start + 5] == ["  hint", "    think. add", "  correct", "    2:1"]


def test_a_method_with_turns_is_asked_for_its_turns():
    found = asked("score", TurnEngine({0: [0, 1, 1], 1: [1, 1, 0]}, group_size=3))
    assert [each["prompt"] for each in found["rounds"]] == ["bare", "revise"]
    assert [turn["parent"] for turn in found["rounds"][1]["turns"]] == [[0, 0], [0, 1], [0, 2]]
    assert "solver, revise: 2 x correct, 1 x wrong" in asked_lines(found)


def test_two_answers_are_shown_right_ones_first_and_none_acts_on_the_terminal():
    outcomes = {0: [0, 0, "truncated", 0, "no_answer", 1]}
    found = asked("grpo", ScriptedEngine(outcomes, texts={0: "\x1b[2Jgone\rover"}))
    lines = asked_lines(json.loads(json.dumps(found)))
    [told] = [line for line in lines if " x " in line]
    assert told.endswith("1 x correct, 3 x wrong, 1 x truncated, 1 x no_answer")
    assert [line.strip() for line in lines].count(r"\x1b[2Jgone\rover") <= 2
    shown = "\n".join(lines)
    assert r"\x1b[2Jgone" in shown and "\x1b" not in shown and "\r" not in shown


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
        engine.grader = Grader()
        start = contextmanager(lambda *_: (yield engine))
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
    node = get_method(name).settings_node
    engine = Engine({turn: [0, 0] for turn in (0, 1, GUIDE)})
    found, requests = driven(
        *(engine, lambda body, number: completion("the teacher says: right")),
        *(f"trainer.method={name}", f"{node}.{role}=teacher", f"{node}.train_{role}=false"),
    )
    rounds = [each["turns"] for each in found["rounds"] if each["role"] == role]
    spoken = [turn["response"] for turns in rounds for turn in turns]
    assert spoken == ["the teacher says: right"] * len(requests) != []


@pytest.mark.parametrize("name", HINTED)
def test_a_teacher_writes_the_hints(name, driven):
    found, requests = driven(
        *(ScriptedEngine({level: [0, 0] for level in range(13)}), None),
        *(f"trainer.method={name}", "hint.source=teacher", "hint.style=paper"),
    )
    hints = [each["hint"] for each in found["rounds"][1:]]
    assert len(requests) == 1 and hints[-1] == "think, add, carry"
