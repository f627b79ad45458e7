"""Re-export the names that users of the release import; see ``adapter/trainer.py``."""

from recipe.hint.adapter.trainer import TRAINERS, HintTrainerSync
from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT, HINT_SYSTEM_PROMPT, HINT_USER_PROMPT_TEMPLATE

__all__ = [
    "ANSWER_SYSTEM_PROMPT",
    "HINT_SYSTEM_PROMPT",
    "HINT_USER_PROMPT_TEMPLATE",
    "TRAINERS",
    "HintTrainerSync",
]
