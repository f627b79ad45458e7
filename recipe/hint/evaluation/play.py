"""Evaluate the turns that a method plays: K conversations per problem, by their last turns."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.evaluation.draw import Job, response_row
from recipe.hint.methods import BASELINE, METHODS
from recipe.hint.rollout import Parts, PromptRollout
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import ProblemState, seed_at
from recipe.hint.settings import HintSettings, build_method, read_settings, read_texts


def evaluated_method(config: DictConfig) -> str:
    """Return ``trainer.method`` where it has several turns, else the one without hints."""
    name = str(config.trainer.method)
    cls = METHODS.get(name)
    return name if cls and cls.has_own_credit else BASELINE


def played_turns(config: DictConfig) -> dict[str, Any] | None:
    """Return what the responses of a method with several turns depend on; ``None`` for others."""
    name = evaluated_method(config)
    if name == BASELINE:
        return None
    settings = _settings(config)
    own = settings.methods[METHODS[name].settings_node.removeprefix("hint.")]
    return {"method": name, "settings": asdict(own), "texts": asdict(read_texts(settings))}


def parts_of_turns(config: DictConfig, engine: Any) -> Parts | None:
    """Return what the conversations are made of; ``None`` for a method with one turn."""
    if evaluated_method(config) == BASELINE:
        return None
    settings = replace(_settings(config), samples=NO_SAMPLES)
    method = build_method(config.trainer, settings).validation()
    return Parts(method, None, engine, settings, read_texts(settings))


async def played_rows(job: Job, *, parts: Parts) -> list[dict[str, Any]]:
    """Play K conversations; those that a killed run left on disk are played the same again."""
    name = f"{job.problem.data_source}/{job.problem.id}"
    rollout = PromptRollout(replace(job.problem, id=name), ProblemState(), parts)
    start = time.perf_counter()
    outcome = await rollout.run("evaluation", 0)
    seconds = round(time.perf_counter() - start, 3)
    seed = seed_at(parts.settings.seed, 0, name, 0)  # of the first turns
    is_seeded = parts.settings.seeded_sampling
    rows = []
    for played in outcome.rows:
        turn, k = played.turn, played.credit.session
        assert turn.verdict, "the last turn is graded"
        if k in job.missing:
            rows.append(
                response_row(
                    job.problem, k, seed + k if is_seeded else None, turn.response, turn.verdict
                )
                | {"prompt_tokens": len(turn.prompt_ids_T), "seconds": seconds}
                | {"facts": dict(played.credit.facts), "conversation": list(turn.messages)}
            )
    return rows


def _settings(config: DictConfig) -> HintSettings:
    node: Any = OmegaConf.to_container(config.hint, resolve=True)
    return read_settings(node)
