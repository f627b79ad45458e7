"""Evaluate the turns that a method plays: K conversations per problem, by their last turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from math import isnan
from typing import Any

from omegaconf import DictConfig

from recipe.hint.hints.base import Endpoint
from recipe.hint.methods import METHODS, Method, MultiTurn
from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import ProblemState
from recipe.hint.settings import (
    HintSettings,
    build_method,
    evaluated_method,
    read_texts,
    settings_of,
)
from recipe.study.evaluation.draw import Job, response_row

TeacherOf = Callable[[Method, HintSettings, Texts, DictConfig, DictConfig], Endpoint | None]


def played_turns(config: DictConfig) -> dict[str, Any] | None:
    """Return what the responses of a method with several turns depend on; ``None`` for others."""
    name = evaluated_method(config)
    if not METHODS[name].is_multi_turn:
        return None
    settings = settings_of(config)
    method = build_method(config.trainer, settings)
    asks_teacher = isinstance(method, MultiTurn) and method.asks_teacher
    teacher = {"teacher": settings.teacher.model} if asks_teacher else {}
    texts = asdict(read_texts(settings))
    return {"method": name, "settings": asdict(method.settings), "texts": texts} | teacher


def parts_of_turns(config: DictConfig, engine: Any, teacher_of: TeacherOf) -> RolloutParts | None:
    """Return what the conversations are made of; ``None`` for a method with one turn."""
    if not METHODS[evaluated_method(config)].is_multi_turn:
        return None
    settings = replace(settings_of(config), samples=NO_SAMPLES)
    texts = read_texts(settings)
    method = build_method(config.trainer, settings)
    rollout = config.actor_rollout_ref.rollout
    teacher = teacher_of(method, settings, texts, rollout, rollout.val_kwargs)
    return RolloutParts(method.validation(), None, engine, settings, texts, teacher)


async def played_rows(job: Job, *, parts: RolloutParts) -> list[dict[str, Any]]:
    """Play K conversations; return only those that a killed run did not leave on disk."""
    name = f"{job.problem.data_source}/{job.problem.id}"
    rollout = PromptRollout(replace(job.problem, id=name), ProblemState(), parts)
    start = time.perf_counter()
    outcome = await rollout.run("evaluation", 0)
    seconds = round(time.perf_counter() - start, 3)
    seed = rollout.first_seed  # of the first turns
    is_seeded = parts.settings.seeded_sampling
    rows = []
    for played in outcome.rows:
        turn, k = played.turn, played.credit.session
        assert turn.verdict, "the last turn has a verdict"
        facts = dict(played.credit.facts)
        is_known = not any(map(isnan, facts.values()))
        if k in job.missing:
            rows.append(
                response_row(
                    job.problem, k, seed + k if is_seeded else None, turn.response, turn.verdict
                )
                | {"prompt_tokens": len(turn.prompt_ids_T), "seconds": seconds}
                | {"facts": facts if is_known else None, "conversation": list(turn.messages)}
            )
    return rows
