"""Estimate what a run will sample."""

from __future__ import annotations

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import ROLLOUT, setting


def cost_line(
    config: DictConfig, responses: tuple[int, int], num_validated: int, steps: int
) -> str:
    """Return a line on the responses of a step, and of the validations during training.

    Args:
        config: The run's.
        responses: Of a step, where every prompt is right at once, and where none ever is.
        num_validated: Problems in the validation files.
        steps: Of the run.
    """
    least, most = responses
    length = config.data.max_response_length
    found = f"{least:,} responses a step, at most {least * length / 1e6:,.3g} M tokens"
    if most > least:
        found += f"; {most:,} and {most * length / 1e6:,.3g} M if none were ever right"
    every = setting(config, "trainer.test_freq")
    count = int(bool(setting(config, "trainer.val_before_train")))
    if not setting(config, "trainer.val_only"):
        count += -(-steps // every) if every > 0 else 0  # the last step is validated too
    cap = setting(config, "data.val_max_samples")
    num_validated = min(num_validated, cap) if cap and cap > 0 else num_validated
    each = num_validated * setting(config, f"{ROLLOUT}.val_kwargs.n")
    validations = f"; {count} validation{'s' * (count != 1)} of {each:,} conversations"
    return found + validations if count else found
