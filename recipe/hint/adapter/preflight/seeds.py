"""Seeds that verl has by its own default, where the run's own seed is to decide."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.folder import resumed_step
from recipe.hint.adapter.preflight.settings import ROLLOUT, setting
from recipe.hint.command.aliases import given_settings
from recipe.hint.schema import seed_at

ENGINES = f"{ROLLOUT}.seed"
_VERLS = 42
_SPACING = 1024  # above the number of replicas, each of which adds its own


def seed_engines(given: DictConfig, config: DictConfig, argv: Sequence[str] = ()) -> None:
    """Derive ``rollout.seed`` from ``hint.seed`` where responses have no seeds of their own.

    Else the engines of every run draw the same random numbers, and a resumed one those of its
    beginning. Replica r takes the seed + r; seeds of two runs are 1,024 or more apart, but for one
    pair of runs in two million.

    Args:
        given: The run's settings, changed in place.
        config: The same, resolved.
        argv: The command line; a seed that is given there stays, and so does one of a preset.
    """
    is_given = ENGINES in given_settings(argv) or setting(config, ENGINES) != _VERLS
    if setting(config, "hint.seeded_sampling") or is_given:
        return
    step = 0 if setting(config, "trainer.eval_only") else resumed_step(config)
    seed = seed_at(setting(config, "hint.seed"), "engines", step) // _SPACING * _SPACING
    given.actor_rollout_ref.rollout.seed = config.actor_rollout_ref.rollout.seed = seed
