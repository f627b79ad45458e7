"""Grade by the score of a reasoning-gym data set (Apache-2.0, github.com/open-thought).

The answer is the last one between <answer> and </answer>. ``extra_info.reasoning_gym`` holds the
library's entry, since a score may read its metadata. Nine scores evaluate the answer as Python, so
a response could forge its own: they evaluate literals or formulas only. On Linux, a grade's process
can write no file, start no process and open no connection either.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from typing import Any

from recipe.run.errors import ConfigError
from recipe.verify.answer import last_of
from recipe.verify.functions import read_result
from recipe.verify.options import GradeOptions
from recipe.verify.programs.sandbox import available_layers, restrict
from recipe.verify.schema import Item, Reason, Verdict

KIND = "reasoning_gym"  # of reward_model.kind, and the field of extra_info
# Scores that evaluate the answer, and what an answer may be there. A call or name that is not in it
# could run code, let sympy solve the problem, or make numbers that are not given (x/x is 1).
_SUM = re.compile(r"(?:[0-9\s()+-]|\*(?!\*)|/(?!/))*")
_FORMULA = re.compile(
    r"(?:[0-9\s()*/+-]|\.(?=[0-9])|[A-Za-z](?!\w|\s*\()"
    r"|(?:exp|log|ln|sqrt|Abs|a?(?:sin|cos|tan)h?)(?=\s*\())*"
)
_FORMS = {"countdown": _SUM, "puzzle24": _SUM, "polynomial_multiplication": _FORMULA}
_FORMS |= {"simple_integration": _FORMULA, "intermediate_integration": _FORMULA}
_LISTS = {"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"}


def data_sets() -> Any:
    """Return the library's module that makes data sets; ``ConfigError`` without the library."""
    try:
        return importlib.import_module("reasoning_gym.factory")
    except ImportError as error:
        raise ConfigError(f"needs reasoning-gym: pip install 'hint-rl[real]' ({error})") from error


def quick_verdict(item: Item, _: GradeOptions) -> Verdict | None:
    """Return the verdict of a response without an answer, else ``None``."""
    answer, reason = _answer(item)
    return None if answer else Verdict(0.0, reason)


def full_verdict(item: Item, _: GradeOptions) -> Verdict:
    """Return the library's score, which may raise anything; accurate is what scores 1."""
    given = json.loads(item.row)["extra_info"][KIND]
    config, entry = (ast.literal_eval(given[name]) for name in ("config", "entry"))
    scorer, answer = data_sets().create_dataset(given["name"], **config), _answer(item)[0]
    restrict("seccomp" if "seccomp" in available_layers() else "")  # Landlock would hide its files
    score = score_of(answer, given["name"], scorer, entry)
    return read_result({"score": score, "acc": float(score >= 1), "pred": answer})


def score_of(answer: str, name: str, data_set: Any, entry: dict[str, Any]) -> float:
    """Return the library's score, which may raise anything; 0 for an answer that could be code."""
    if name in _LISTS:
        type(data_set).score_answer.__globals__["eval"] = ast.literal_eval
    if name in _FORMS and not _FORMS[name].fullmatch(answer):
        return 0.0
    return data_set.score_answer(answer, entry)


def _answer(item: Item) -> tuple[str, Reason]:
    """Return the answer, or an empty text, and what that is."""
    text = item.response.rpartition("</think>")[2]
    found = None if "<think>" in text else last_of("tags", text, item.is_truncated)
    answer = ((found and found[1]) or "").strip()
    return answer, "truncated" if item.is_truncated else "malformed" if found else "no_answer"
