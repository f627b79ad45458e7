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


def build_parts(
    config: DictConfig, settings: HintSettings, engine: Any, *, validates: bool = False
) -> RolloutParts:
    """Return the parts of a rollout of training, which `main_ask.py` uses too.

    A validation or evaluation has no hints and keeps no samples. A teacher that the method asks for
    turns is sampled as the policy.
    """
    rollout, source, teacher = config.actor_rollout_ref.rollout, None, None
    texts, method = read_texts(settings), build_method(config.trainer, settings)
    if method.settings.asks_teacher:
        how = rollout.val_kwargs if validates else rollout
        teacher = _build_teacher(settings, texts, 1, how, rollout.response_length)
    if validates:
        method, settings = method.validation(), replace(settings, samples=NO_SAMPLES)
    elif source := build_source(settings, texts, method):
        source = LeakGuard(source, settings.leak_policy, graded_equal(engine.grader.grade_many))
    return RolloutParts(method, source, engine, settings, texts, teacher)


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
