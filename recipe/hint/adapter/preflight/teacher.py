"""Check the teacher of a run that asks one."""

from __future__ import annotations

import os

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.folder import check_folder
from recipe.hint.adapter.preflight.settings import setting
from recipe.hint.hints import teacher_settings
from recipe.hint.methods import Method, MultiTurn
from recipe.hint.settings import HintSettings, source_of


def check_teacher(config: DictConfig, method: Method, settings: HintSettings) -> list[str]:
    """Check the teacher, if the method asks it for turns or for hints.

    Returns:
        Lines of warning.

    Raises:
        ConfigError: If it cannot be asked, or its responses cannot be kept.
    """
    gives_hints = method.uses_hints and source_of(settings, method) == "teacher"
    writes_turns = isinstance(method, MultiTurn) and method.asks_teacher
    if not (writes_turns or gives_hints):
        return []
    teacher = settings.teacher
    teacher_settings.check_teacher(teacher, os.environ)
    check_folder("hint.teacher.cache_dir", teacher.cache_dir)
    from recipe.hint.hints.teacher_reach import check_reached  # the HTTP library

    is_elsewhere = bool(setting(config, "preflight_only"))
    warning = check_reached(teacher, os.environ, is_elsewhere=is_elsewhere)
    return [f"warning: {warning}"] if warning else []
