"""Programs in two and three turns: rows as `main_prepare.py` writes them, programs really run."""

import asyncio
import json

import pytest
from talks import TurnEngine, roll_out

from recipe.hint import main_prepare
from recipe.hint.methods.dialogue import GuideSettings, SolverSettings
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score import Score
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.schema import Response
from recipe.problems.columns import read_problems
from recipe.verify.grading import grade
from recipe.verify.schema import Item

# The second check is not in the problem: whatever holds 4202 has it from the tests.
TESTS = "import math\nassert double(1) == 2\nassert double(2101) == 4202, 'far off'"
RIGHT = "def double(x):\n    return 2 * x"
NEARLY = "def double(x):\n    return 2 if x == 1 else 0"
RAISES = "def double(x):\n    raise ValueError(f'no {x}')"


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    row = {"problem": "Write double(x).", "answer": TESTS, "solution": f"```python\n{RIGHT}\n```"}
    (folder / "rows.jsonl").write_text(json.dumps(row))
    out = folder / "rows.parquet"
    main_prepare.main([str(folder / "rows.jsonl"), str(out), "--kind", "program"])
    return read_problems(out)[0]


class ProgramEngine(TurnEngine):
    """Solvers write these programs one after the other, guides a sentence; the verifier is real."""

    def __init__(self, programs, prompt_length=10_000):
        super().__init__({}, prompt_length)
        self.programs = list(programs)
        self.prompts = []

    async def sample(self, prompt_ids, seed, rows, max_tokens):
        prompt = "".join(map(chr, prompt_ids))
        self.prompts.append(prompt)
        is_guide = prompt.startswith("[system]You are a tutor")
        texts = ["Look at line 2." if is_guide else self._program() for _ in rows]
        return [Response([1], [0.0], text, is_truncated=False) for text in texts]

    def _program(self):
        code = self.programs.pop(0)
        return f"```python\n{code}\n```" if code else "I do not know."

    async def grade(self, problem, responses):
        items = [Item(each.text, problem.answer, kind=problem.kind) for each in responses]
        return [grade(item) for item in items]

    async def leaks(self, problem, responses):
        return [False] * len(responses)


METHODS = {
    "score": (Score, SolverSettings),
    "score-guided": (ScoreGuided, GuideSettings),
    "mlmt": (Mlmt, MlmtSettings),
}
ALL = pytest.mark.parametrize("name", METHODS)


def play(name, problem, programs, *, prompt_length=10_000, **settings):
    cls, settings_cls = METHODS[name]
    method = cls(settings=settings_cls(stage1_steps=0, **settings))
    engine = ProgramEngine(programs, prompt_length)
    return asyncio.run(roll_out(method, engine, item=problem)), engine.prompts


@ALL
def test_programs_train_in_every_turn_and_their_failures_are_counted_by_reason(name, problem):
    outcome, _ = play(name, problem, [NEARLY, "", RIGHT, RAISES])
    accuracies = [each.accuracies for each in outcome.record.rounds if each.role == "solver"]
    assert accuracies == [(0.0, 0.0), (1.0, 0.0)]
    assert outcome.record.reasons == {"wrong": 2, "no_answer": 1, "correct": 1}
    assert [each.facts["wrong_to_right"] for each in outcome.record.conversations] == [1.0, 0.0]
    assert outcome.record.has_signal


@ALL
def test_no_prompt_holds_anything_of_the_tests(name, problem):
    assert problem.answer == TESTS and "4202" not in problem.text
    outcome, prompts = play(name, problem, [NEARLY, RAISES, NEARLY, RAISES])
    assert len(prompts) == {"score": 3}.get(name, 5)  # the group, then one of each conversation
    assert not [prompt for prompt in prompts if "4202" in prompt or "far off" in prompt]
    # Nor does the record.
    assert "4202" not in repr(outcome.record)


def test_what_a_program_says_can_be_written_down_and_is_short(problem):
    # A lone surrogate is no text that a tokenizer takes; 10^6 characters are no message.
    odd = "def double(x):\n    raise ValueError('\\ud800' + 'a' * 10**6)"
    verdict = grade(Item(f"```python\n{odd}\n```", problem.answer, kind="program"))
    assert verdict.reason == "wrong"
    assert verdict.detail.startswith("assert double(1) == 2\nValueError: ?aaa")
    assert len(verdict.detail.encode()) <= 1000


def test_only_failures_of_the_program_have_a_detail(problem):
    right = grade(Item(f"```python\n{RIGHT}\n```", problem.answer, kind="program"))
    assert (right.reason, right.detail) == ("correct", "")
    # The row's fault, not the program's.
    broken = grade(
        Item(f"```python\n{RIGHT}\n```", "import no_such\nassert double(1)", False, "program")
    )
    assert (broken.reason, broken.detail) == ("error", "")
