"""Build what a run's prompt rollouts are made of: its source of hints, its teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from recipe.hint.hints.base import HintSource, TeacherSampling
from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.hint.hints.leak import LeakGuard, graded_equal
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.hints.solution_prefix import SolutionPrefix
from recipe.hint.methods import Method
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.settings import HintSettings, build_method, read_texts

if TYPE_CHECKING:
    from recipe.hint.hints.teacher import Teacher


def parts_of_training(
    config: DictConfig, settings: HintSettings, engine: Any, *, grader: Any
) -> RolloutParts:
    """Return the parts of a training rollout, which `main_ask.py` uses too."""
    parts = _parts(config, settings, engine, config.actor_rollout_ref.rollout)
    source = build_source(settings, parts.texts, parts.method)
    if source is not None:
        source = LeakGuard(source, settings.leak_policy, graded_equal(grader.grade_many))
    return replace(parts, source=source)


def parts_of_validation(config: DictConfig, settings: HintSettings, engine: Any) -> RolloutParts:
    """Return those of a validation or evaluation, which has no hints and keeps no samples."""
    quiet, how = replace(settings, samples=NO_SAMPLES), config.actor_rollout_ref.rollout.val_kwargs
    parts = _parts(config, quiet, engine, how)
    return replace(parts, method=parts.method.validation())


def _parts(
    config: DictConfig, settings: HintSettings, engine: Any, sampling: DictConfig
) -> RolloutParts:
    """Return the parts, with the teacher where the method asks it for turns, sampled as its own."""
    texts, method, teacher = read_texts(settings), build_method(config.trainer, settings), None
    if method.settings.asks_teacher:
        length = config.actor_rollout_ref.rollout.response_length
        teacher = _build_teacher(settings, texts, 1, sampling, length)
    return RolloutParts(method, None, engine, settings, texts, teacher)


def build_source(settings: HintSettings, texts: Texts, method: Method) -> HintSource | None:
    """Return the method's source of hints, without the leak guard; ``None`` if it uses none."""
    if not method.uses_hints:
        return None
    name, levels = settings.source or method.source, settings.max_level
    source: HintSource
    if name == "solution_prefix":
        prefix = settings.prefix
        source = SolutionPrefix(ratios=prefix.ratios, unit=prefix.unit)
    elif name == "dataset":
        source = DatasetHints(max_level=levels, seed=settings.seed)
    elif name == "teacher":
        source = _build_teacher(settings, texts, levels, settings, settings.max_tokens)
    else:
        attempts = settings.attempts if settings.temperature else 1  # the same text each time
        source = SelfGenerated(texts=texts, attempts=attempts, max_level=levels)
    return Increments(source, method.increments) if method.increments > 1 else source


def _build_teacher(
    settings: HintSettings, texts: Texts, levels: int, sampling: Any, max_tokens: int
) -> Teacher:
    # Here: only a run with a teacher needs its cache's sqlite3.
    from recipe.hint.hints.teacher import Teacher

    how = TeacherSampling(sampling.temperature, sampling.top_p, max_tokens, settings.seed)
    return Teacher(
        settings.teacher, texts=texts, sampling=how, attempts=settings.attempts, max_level=levels
    )
