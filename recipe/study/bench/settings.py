"""What a benchmark run measures: the ``bench.*`` arguments, and what they make of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from recipe.hint.methods import BASELINE, METHODS, RELEASED
from recipe.run.errors import ConfigError

MANAGER = "recipe.study.bench.worker.BenchManager"
_T = TypeVar("_T")


@dataclass
class BenchSettings:
    """The ``bench.*`` arguments.

    Attributes:
        arms: Methods by name.
        steps: Measured rounds; in each round every arm makes one step.
        warmup: Rounds before these, not counted.
        batches: Batches that the rounds go through, in turn.
        unresolved: Share of problems in a batch that the calibration left unsolved; negative:
            the batches as the data gives them.
        calibration: Steps of the baseline before the first round, which sort the problems.
        alone: Also send the requests of the baseline to vLLM without the recipe.
    """

    arms: list[str] = field(default_factory=lambda: [BASELINE, *RELEASED])
    steps: int = 6
    warmup: int = 2
    batches: int = 1
    unresolved: float = 0.3125
    calibration: int = 3
    alone: bool = True


def split_arguments(argv: Sequence[str]) -> tuple[list[str], BenchSettings]:
    """Return the arguments for Hydra, and those of the benchmark.

    Raises:
        ConfigError: If a ``bench.*`` argument is unknown or out of range.
    """
    rest, settings = read_arguments(argv, "bench.", BenchSettings)
    check_bench(settings)
    return rest, settings


def read_arguments(argv: Sequence[str], prefix: str, cls: type[_T]) -> tuple[list[str], _T]:
    """Return the arguments without ``prefix``, and those with it as a dataclass.

    Raises:
        ConfigError: If one of the latter is unknown or has the wrong type.
    """
    own = [arg.removeprefix(prefix) for arg in argv if arg.startswith(prefix)]
    rest = [arg for arg in argv if not arg.startswith(prefix)]
    try:
        merged = OmegaConf.merge(OmegaConf.structured(cls), OmegaConf.from_dotlist(own))
    except OmegaConfBaseException as error:
        raise ConfigError(
            f"{', '.join(prefix + arg for arg in own)}: {str(error).splitlines()[0]}; "
            f"choose from {', '.join(prefix + name for name in cls.__annotations__)}"
        ) from error
    settings = OmegaConf.to_object(merged)
    assert isinstance(settings, cls)
    return rest, settings


def check_bench(settings: BenchSettings) -> None:
    """Refuse arms that do not exist and numbers out of range.

    Raises:
        ConfigError: Naming the argument.
    """
    for arm in settings.arms:
        if arm not in METHODS:
            raise ConfigError(f"bench.arms={arm} is not an arm; choose from {', '.join(METHODS)}")
    if len(set(settings.arms)) < len(settings.arms) or BASELINE not in settings.arms:
        raise ConfigError(
            f"bench.arms={settings.arms} must name each arm once, and {BASELINE} among them: "
            "the others are compared with it"
        )
    for name, least in (("steps", 1), ("warmup", 0), ("batches", 1), ("calibration", 1)):
        if getattr(settings, name) < least:
            raise ConfigError(f"bench.{name}={getattr(settings, name)} must be at least {least}")
    if settings.unresolved > 1:
        raise ConfigError(f"bench.unresolved={settings.unresolved} must be a share, at most 1")


def apply_bench_mode(config: DictConfig, bench: BenchSettings) -> None:
    """Rewrite the settings that a benchmark decides.

    Raises:
        ConfigError: If the trainer's mode is not ``sync``: a step has no rollout phase of its own
            in the others.
    """
    if config.trainer.v1.trainer_mode != "sync":
        raise ConfigError(
            f"trainer.v1.trainer_mode={config.trainer.v1.trainer_mode}: the benchmark times the "
            "rollout phase of a step, which only sync has; leave the setting out"
        )
    trainer = config.trainer
    with open_dict(config):
        trainer.method = RELEASED[0]
        trainer.val_before_train = False
        trainer.save_freq = trainer.test_freq = -1
        trainer.resume_mode = "disable"
        trainer.logger = []
        unresolved: Any = OmegaConf.to_container(trainer, resolve=False)
        if unresolved["experiment_name"] == "${trainer.method}-${now:%Y%m%d-%H%M%S}":
            trainer.experiment_name = "bench-${now:%Y%m%d-%H%M%S}"
        rounds = bench.warmup + bench.steps
        trainer.total_training_steps = bench.calibration + rounds * len(bench.arms)
        config.actor_rollout_ref.rollout.agent.agent_loop_manager_class = MANAGER
        config.bench = OmegaConf.structured(bench)


def freeze_weights(config: DictConfig) -> None:
    """Set the learning rate to 0: a step costs what it costs and changes nothing."""
    config.actor_rollout_ref.actor.optim.lr = 0.0


def bench_of(config: DictConfig) -> BenchSettings:
    """Return the settings that :func:`apply_bench_mode` wrote into the configuration."""
    node: Any = OmegaConf.to_container(config.bench)
    return BenchSettings(**node)
