"""The cases of a simulation: which method in which mode on which replicas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recipe.hint.methods import BASELINE, METHODS
from recipe.run.errors import ConfigError
from recipe.run.typed import read_typed
from recipe.study.bench.fleet import SPEEDS
from recipe.study.bench.settings import RELEASE
from recipe.study.bench.world import World

ARMS = (*METHODS, RELEASE)
MODES = ("sync", "colocate_async", "separate_async")


@dataclass(frozen=True)
class Case:
    """One simulated run.

    Attributes:
        batch: Prompts of a step, P.
        steps: Steps that count, after ``warmup`` ones in which levels settle.
        sync_s: The weight sync and all else of a step that does not grow with its tokens.
        train_share: Share of the replicas that train, in ``separate_async``.
        train_speed: Factor on the devices' speed in training; it moves the share of generation.
        updates: Updates between two syncs, in ``separate_async`` (``parameter_sync_step``).
        max_staleness: Groups older than so many steps are thrown away (verl's default).
    """

    arm: str = BASELINE
    mode: str = "sync"
    replicas: int = 8
    speed: str = "8b-h100"
    batch: int = 128
    steps: int = 4
    warmup: int = 8
    sync_s: float = 10.0
    train_share: float = 0.5
    train_speed: float = 1.0
    updates: int = 4
    max_staleness: int = 8
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        for name, known in (("arm", ARMS), ("mode", MODES), ("speed", tuple(SPEEDS))):
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"{name}={getattr(self, name)} is unknown; choose from {', '.join(known)}"
                )

        for name in ("replicas", "batch", "steps", "updates", "max_staleness"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        if self.mode == "separate_async" and self.batch % self.updates:
            raise ConfigError(f"batch={self.batch} must be a multiple of updates={self.updates}")
        if self.train_speed <= 0 or self.sync_s < 0 or self.warmup < 0:
            raise ConfigError(
                f"train_speed={self.train_speed} must be above 0, sync_s={self.sync_s} and "
                f"warmup={self.warmup} at least 0"
            )

    @property
    def is_possible(self) -> bool:
        """Whether the arm runs in the mode: the release's barriers need ``sync``, two pools two."""
        if self.mode == "sync":
            return True
        return self.arm != RELEASE and (self.mode != "separate_async" or self.replicas > 1)

    @property
    def train_replicas(self) -> int:
        """Replicas whose devices train."""
        if self.mode != "separate_async":
            return self.replicas
        return min(max(round(self.replicas * self.train_share), 1), self.replicas - 1)


def cases_of(argv: Sequence[str]) -> Iterator[Case]:
    """Yield the cases of ``name=value`` arguments; a list stands for one case per value.

    Names are fields of :class:`Case` or of :class:`World`.

    Raises:
        ConfigError: If a name is unknown or a value does not fit.
    """
    try:
        given: Any = OmegaConf.to_container(OmegaConf.from_dotlist(list(argv)))
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"{' '.join(argv)}: {str(error).splitlines()[0]}") from error
    worlds = {item.name for item in fields(World)}
    names = [item.name for item in fields(Case) if item.name != "world"] + sorted(worlds)
    for name in given:
        if name not in names:
            raise ConfigError(f"{name} is unknown; choose from {', '.join(names)}")
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    for values in itertools.product(*lists):
        chosen = dict(zip(given, values, strict=True))
        world = {name: chosen.pop(name) for name in list(chosen) if name in worlds}
        case = read_typed(Case, chosen | {"world": world}, "scale")
        if case.is_possible:
            yield case
