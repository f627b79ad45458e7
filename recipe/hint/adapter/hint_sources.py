"""Build what a run's prompt rollouts are made of: its source of hints, its teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from recipe.hint.hints.base import HintSource, TeacherSampling
from recipe.hint.hints.dataset import DatasetHints, Increments
from recipe.hint.hints.leak import LeakGuard, graded_equal
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.hints.solution_prefix import SolutionPrefix, unit_ends
from recipe.hint.methods import Method
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import HintSettings, build_method, num_levels, read_texts, source_of

if TYPE_CHECKING:
    from recipe.hint.hints.teacher import Teacher


def parts_of_training(
    config: DictConfig, settings: HintSettings, engine: Any, *, grader: Any, tokenizer: Any
) -> RolloutParts:
    """Return the parts of a training rollout, which `main_ask.py` uses too."""
    texts, method = read_texts(settings), build_method(config.trainer, settings)
    source = guarded_source(settings, texts, method, grader=grader, tokenizer=tokenizer)
    rollout = config.actor_rollout_ref.rollout
    teacher = teacher_of(method, settings, texts, rollout, rollout)
    return RolloutParts(method, source, engine, settings, texts, teacher)


def guarded_source(
    settings: HintSettings, texts: Texts, method: Method, *, grader: Any, tokenizer: Any
) -> HintSource | None:
    """Return the method's source of hints behind the leak guard; ``None`` if it uses none."""
    source = build_source(settings, texts, method, tokenizer=tokenizer)
    return source and LeakGuard(source, settings.leak_policy, graded_equal(grader.grade_many))


def build_source(
    settings: HintSettings, texts: Texts, method: Method, *, tokenizer: Any
) -> HintSource | None:
    """Return the same without the guard."""

    def token_ends(text: str) -> list[int]:
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return [end for _, end in encoded["offset_mapping"]]

    if not method.uses_hints:
        return None
    name = source_of(settings, method)
    levels = num_levels(settings, name)
    source: HintSource
    if name == "solution_prefix":
        prefix = settings.prefix
        source = SolutionPrefix(ratios=prefix.ratios, ends=unit_ends(prefix.unit, token_ends))
    elif name == "dataset":
        source = DatasetHints(max_level=levels, seed=settings.seed)
    elif name == "teacher":
        how = settings.temperature, settings.top_p, settings.max_tokens
        source = _build_teacher(settings, texts, levels, *how)
    else:
        attempts = settings.attempts if settings.temperature else 1  # the same text each time
        source = SelfGenerated(texts=texts, attempts=attempts, max_level=levels)
    return Increments(source, method.increments) if method.increments > 1 else source


def teacher_of(
    method: Method,
    settings: HintSettings,
    texts: Texts,
    rollout: DictConfig,
    sampling: DictConfig,
) -> Teacher | None:
    """Return the endpoint where the method asks it for turns, sampled as the policy's are.

    Args:
        method: Decides whether the teacher is asked.
        settings: The ``hint:`` node.
        texts: Its prompts.
        rollout: verl's node, for the longest response.
        sampling: The same node, or its ``val_kwargs``.
    """
    if not method.settings.asks_teacher:
        return None
    how = sampling.temperature, sampling.top_p, rollout.response_length
    return _build_teacher(settings, texts, 1, *how)


def _build_teacher(
    settings: HintSettings,
    texts: Texts,
    levels: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
) -> Teacher:
    # Here: only a run with a teacher needs its cache's sqlite3.
    from recipe.hint.hints.teacher import Teacher

    return Teacher(
        settings.teacher,
        texts=texts,
        sampling=TeacherSampling(temperature, top_p, max_tokens, settings.seed),
        attempts=settings.attempts,
        max_level=levels,
    )
