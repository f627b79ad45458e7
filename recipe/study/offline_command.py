"""The command ``main_prepare.py hints``: its arguments, and what it builds from them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from recipe.hint.hints.leak import graded_equal
from recipe.hint.hints.teacher_settings import TeacherSampling, TeacherSettings
from recipe.hint.methods import RELEASED
from recipe.hint.settings import HintSettings, build_method, read_texts
from recipe.problems.columns import check_target
from recipe.run.errors import ConfigError, DataError
from recipe.run.typed import finite, read_json
from recipe.study.offline_hints import OfflineReport, write_offline_hints
from recipe.verify.pool.workers import VerifierPool

logger = logging.getLogger(__name__)

DESCRIPTION = """Writes the columns hint_level_1, hint_level_2, hint_level_3 with any served model.

main_prepare.py hints IN.parquet OUT.parquet --model NAME [--url http://localhost:8000/v1]

A local model is served by `vllm serve MODEL`. The same command continues after a stop or a failure:
responses are kept in --cache. --api-key-env names the environment variable that holds the key of
an endpoint.
"""
_SETTING = re.compile(r"(?<![\w./-])hint\.(?:teacher\.)?(\w+)(=?)")
# Settings whose options have another name.
_OPTIONS = {"base_url": "url", "num_ladders": "per_prompt", "cache_dir": "cache"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; the defaults are those of the settings ``hint.*``."""
    hints, teacher = HintSettings(), TeacherSettings()
    parser.add_argument("input", type=Path, metavar="IN.parquet")
    parser.add_argument("output", type=Path, metavar="OUT.parquet")
    parser.add_argument("--model", required=True, help="name the endpoint knows it by")
    parser.add_argument("--url", default="http://localhost:8000/v1")
    parser.add_argument("--api-key-env", metavar="NAME", help="variable that holds the key")
    parser.add_argument(
        "--per-prompt", type=int, default=1, metavar="N", help="sets of hints per problem"
    )
    parser.add_argument("--cache", type=Path, help="folder of responses (default: OUT.answers)")
    asking = parser.add_argument_group("what is asked")
    asking.add_argument("--prompts", metavar="FILE.yaml", help="other texts, as in hint.prompts")
    asking.add_argument("--max-level", type=int, default=hints.max_level)
    asking.add_argument("--max-tokens", type=int, default=hints.max_tokens)
    asking.add_argument("--temperature", type=finite, default=hints.temperature)
    asking.add_argument("--top-p", type=finite, default=hints.top_p)
    asking.add_argument("--seed", type=int, default=hints.seed)
    asking.add_argument("--attempts", type=int, default=hints.attempts)
    asking.add_argument("--body", default="{}", metavar="JSON", help="further fields of a request")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--num-parallel", type=int, default=teacher.num_parallel)
    limits.add_argument("--timeout-s", type=finite, default=teacher.timeout_s)
    limits.add_argument("--num-retries", type=int, default=teacher.num_retries)
    limits.add_argument("--backoff-s", type=finite, default=teacher.backoff_s)
    limits.add_argument("--max-wait-s", type=finite, default=teacher.max_wait_s)
    limits.add_argument("--budget-tokens", type=int, help="stop when as many are paid")


def run(given: argparse.Namespace) -> OfflineReport:
    """Write the file; the summary of the report is for the user.

    Raises:
        ConfigError: If an argument is out of range, or the key is missing; settings have the names
            of their options.
        DataError: If the input or the output cannot be used, or a set of hints is still missing.
    """
    try:
        return _write(given)
    except (ConfigError, DataError) as error:
        raise type(error)(_with_options(given, str(error))) from error


def _with_options(given: argparse.Namespace, message: str) -> str:
    """Return a message with each setting as the option that gives it."""
    names = {name: name for name in vars(given)} | _OPTIONS
    return _SETTING.sub(partial(_option, names), message)


def _option(names: Mapping[str, str], setting: re.Match[str]) -> str:
    """Return a setting of a message as the option that gives it."""
    if setting[1] not in names:
        return setting[0]
    return f"--{names[setting[1]].replace('_', '-')}{' ' if setting[2] else ''}"


def _write(given: argparse.Namespace) -> OfflineReport:
    if given.per_prompt < 1:
        raise DataError(f"--per-prompt must be at least 1, got {given.per_prompt}")
    check_target(given.output)
    hints = HintSettings(
        source="teacher",
        prompts=given.prompts,
        max_level=given.max_level,
        max_tokens=given.max_tokens,
        temperature=given.temperature,
        top_p=given.top_p,
        attempts=given.attempts,
    )
    texts = read_texts(hints)
    build_method({"method": RELEASED[0]}, hints)  # refuses the levels that a run would refuse
    # The HTTP library, for this command alone.
    from recipe.hint.hints.teacher import Teacher
    from recipe.hint.hints.teacher_reach import check_reached

    settings = _settings(given)
    if warning := check_reached(settings, os.environ):
        logger.warning(_with_options(given, warning))
    teacher = Teacher(
        settings,
        texts=texts,
        sampling=TeacherSampling(given.temperature, given.top_p, given.max_tokens, given.seed),
        attempts=given.attempts,
        max_level=given.max_level,
    )
    with VerifierPool() as pool:
        return asyncio.run(
            write_offline_hints(
                given.input,
                given.output,
                teacher,
                max_level=given.max_level,
                per_prompt=given.per_prompt,
                equal=graded_equal(pool.grade_many),
            )
        )


def _settings(given: argparse.Namespace) -> TeacherSettings:
    return TeacherSettings(
        base_url=given.url,
        model=given.model,
        api_key_env=given.api_key_env,
        num_ladders=given.per_prompt,
        num_parallel=given.num_parallel,
        timeout_s=given.timeout_s,
        num_retries=given.num_retries,
        backoff_s=given.backoff_s,
        max_wait_s=given.max_wait_s,
        budget_tokens=given.budget_tokens,
        cache_dir=str(given.cache or given.output.with_suffix(".answers")),
        body=_body(given.body),
    )


def _body(text: str) -> dict[str, Any]:
    try:
        body = read_json(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise DataError(f'--body must be a JSON object such as {{"top_k": 20}}, got {text!r}')
    return body
