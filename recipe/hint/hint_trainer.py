"""Re-export the names that users of the release import; see ``runtime/trainer.py``."""

from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT, HINT_SYSTEM_PROMPT, HINT_USER_PROMPT_TEMPLATE
from recipe.hint.runtime.trainer import TRAINERS, HintTrainerSync

__all__ = [
    "ANSWER_SYSTEM_PROMPT",
    "HINT_SYSTEM_PROMPT",
    "HINT_USER_PROMPT_TEMPLATE",
    "TRAINERS",
    "HintTrainerSync",
]
