"""The `hint:` node and the methods' knobs: defaults live here, YAML repeats them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import yaml

from recipe.hint.errors import ConfigError
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.methods import Method, get_method
from recipe.hint.methods.base import Refresh
from recipe.hint.methods.fixed import FixedSettings
from recipe.hint.methods.ghpo import GhpoSettings
from recipe.hint.methods.sage import SearchSettings
from recipe.hint.methods.sage_light import LightSettings
from recipe.hint.methods.scaf import ScafSettings
from recipe.hint.prompt import Texts, load_texts
from recipe.hint.samples import SampleSettings
from recipe.hint.typed import read_typed

BUILT_IN_LEVELS = 3
Source = Literal["self_generated", "dataset", "teacher", "solution_prefix"]


@dataclass(frozen=True)
class VerifySettings:
    """How answers are graded (docs/verification.md)."""

    num_workers: int = 2
    timeout_s: float = 10.0
    wall_factor: float = 6.0
    worker_memory_mib: int = 1024
    require_boxed: bool = True
    program_wall_s: float = 40.0
    program_cpu_s: int = 8
    program_memory_mib: int = 512
    program_isolation: Literal["full", "partial", "none"] = "partial"
    audit: bool = False


@dataclass(frozen=True)
class PrefixSettings:
    """How much of the solution each level of source ``solution_prefix`` shows.

    Raises:
        ConfigError: If the shares do not grow from above 0 to below 1.
    """

    ratios: tuple[float, ...] = (0.25, 0.5, 0.75)
    unit: Literal["char", "token", "sentence"] = "char"

    def __post_init__(self) -> None:
        bounds = (0.0, *self.ratios, 1.0)
        if len(bounds) < 3 or any(low >= high for low, high in itertools.pairwise(bounds)):
            raise ConfigError(
                f"hint.prefix.ratios={list(self.ratios)} must be shares of the solution that grow, "
                f"above 0 and below 1, like [0.25,0.5,0.75]"
            )


@dataclass(frozen=True)
class WatchdogSettings:
    """The longest time each part may take before the run ends with its name, in seconds."""

    start_s: float = 900.0
    queue_s: float = 120.0
    rollout_s: float = 3600.0
    sync_s: float = 600.0
    update_s: float = 7200.0
    save_s: float = 3600.0


@dataclass(frozen=True)
class HintSettings:
    """The ``hint:`` node of ``hint_trainer.yaml``; every key is commented there."""

    run_dir: str = "outputs/${trainer.experiment_name}"
    seed: int = 1
    max_level: int = 3
    source: Source | None = None
    prompts: str | None = None
    style: Literal["paper", "release"] = "paper"
    max_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    attempts: int = 3
    too_long: Literal["cut", "skip"] = "cut"
    conditioning: Literal["hinted", "unhinted"] = "hinted"
    leak_policy: Literal["measure", "drop", "redact"] = "measure"
    reliance_every: int = 0
    refresh_share: float = 0.0
    teacher: TeacherSettings = field(default_factory=TeacherSettings)
    prefix: PrefixSettings = field(default_factory=PrefixSettings)
    fixed: FixedSettings = field(default_factory=FixedSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    ghpo: GhpoSettings = field(default_factory=GhpoSettings)
    scaf: ScafSettings = field(default_factory=ScafSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    samples: SampleSettings = field(default_factory=SampleSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)

    def __post_init__(self) -> None:
        for name in ("max_level", "max_tokens", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"hint.{name}={getattr(self, name)} must be at least 1")
        if self.reliance_every < 0 or not 0 <= self.refresh_share <= 1:
            raise ConfigError(
                f"hint.reliance_every={self.reliance_every} must be a number of steps or 0 (never) "
                f"and hint.refresh_share={self.refresh_share} in [0, 1]"
            )
        is_written = self.source in (None, "self_generated", "teacher")
        if is_written and self.max_level > BUILT_IN_LEVELS and self.prompts is None:
            raise ConfigError(
                f"hint.max_level={self.max_level}, but the built-in prompt asks for "
                f"{BUILT_IN_LEVELS} levels; give hint.prompts with a text that asks for as many"
            )
        if self.temperature < 0:
            raise ConfigError(f"hint.temperature={self.temperature} must be at least 0")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"hint.top_p={self.top_p} must be above 0 and at most 1")
        limits = (self.verify, self.watchdog)
        for node, prefix in zip(limits, ("hint.verify", "hint.watchdog"), strict=True):
            for name, value in vars(node).items():
                if not isinstance(value, bool | str) and value <= 0:
                    raise ConfigError(f"{prefix}.{name}={value} must be positive")


# Knobs outside the general ones -> who reads them.
_METHOD_NODES: dict[str, tuple[type, str]] = {
    **{f"trainer.{item.name}": (LightSettings, "sage-light") for item in fields(LightSettings)},
    "hint.fixed": (FixedSettings, "fixed"),
    "hint.search": (SearchSettings, "sage"),
    "hint.ghpo": (GhpoSettings, "ghpo"),
    "hint.scaf": (ScafSettings, "scaf"),
}
_WRITTEN = ("self_generated", "teacher")
_SOURCE_KNOBS: dict[str, tuple[str, ...]] = {
    "hint.max_level": ("self_generated", "dataset", "teacher"),
    "hint.teacher": ("teacher",),
    "hint.prefix": ("solution_prefix",),
    **{f"hint.{name}": _WRITTEN for name in ("max_tokens", "temperature", "top_p", "attempts")},
}
_HINT_KNOBS = (
    *(f"hint.{name}" for name in ("source", "prompts", "style", "too_long")),
    *(f"hint.{name}" for name in ("conditioning", "leak_policy")),
    *(f"hint.{name}" for name in ("reliance_every", "refresh_share")),
    *_SOURCE_KNOBS,
)


def read_settings(node: Mapping[str, Any]) -> HintSettings:
    """Typed settings from the resolved ``hint:`` node.

    Raises:
        ConfigError: On an unknown key, a value of the wrong type, or one out of range.
    """
    return read_typed(HintSettings, node, "hint")


def read_texts(settings: HintSettings) -> Texts:
    """The prompts' texts, with those of ``hint.prompts`` replaced.

    Raises:
        ConfigError: If the file cannot be read or holds something else than texts.
    """
    if settings.prompts is None:
        return Texts()
    path = Path(settings.prompts)
    try:
        mapping = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"hint.prompts={settings.prompts}: cannot be read as YAML: {error}"
        ) from error
    if not isinstance(mapping, dict):
        raise ConfigError(
            f"hint.prompts={settings.prompts}: expected a mapping of texts, got {mapping!r}"
        )
    return load_texts(mapping, f"hint.prompts={settings.prompts}")


def build_method(trainer: Mapping[str, Any], settings: HintSettings) -> Method:
    """The method that ``trainer.method`` names, with its own knobs.

    Raises:
        ConfigError: If the name is unknown or a knob is out of range.
    """
    cls = get_method(trainer["method"])
    if cls.settings_cls is LightSettings:
        names = [item.name for item in fields(LightSettings)]
        knobs: Any = read_typed(LightSettings, {name: trainer[name] for name in names}, "trainer")
    else:
        nodes = (settings.fixed, settings.search, settings.ghpo, settings.scaf)
        knobs = next((node for node in nodes if type(node) is cls.settings_cls), None)
    return cls(
        max_level=num_levels(settings, source_of(settings, cls)) if cls.uses_hints else 0,
        settings=knobs,
        refresh=Refresh(settings.refresh_share, settings.seed),
    )


def source_of(settings: HintSettings, method: Method | type[Method]) -> str:
    """The source of hints: ``hint.source``, or the one that the method is defined with."""
    return settings.source or method.source


def num_levels(settings: HintSettings, source: str) -> int:
    """Levels of the source's hint levels; a method may cut each of them into several."""
    if source == "solution_prefix":
        return len(settings.prefix.ratios)
    return settings.max_level


def check_knobs_are_read(
    method_name: str, given: Iterable[str], settings: HintSettings | None = None
) -> None:
    """Refuse a setting that was given on the command line but that nothing reads.

    Args:
        method_name: Value of ``trainer.method``.
        given: Dotted names that the user set.
        settings: The ``hint:`` node, which names the source of hints.

    Raises:
        ConfigError: Naming the setting and who reads it.
    """
    cls = get_method(method_name)
    source = source_of(settings or HintSettings(), cls)
    for name in given:
        reader = _reader(name, cls, source)
        if reader:
            raise ConfigError(
                f"{name} is not read by trainer.method={method_name}; only {reader} reads it. "
                f"Drop the setting or change the method"
            )


def _reader(name: str, cls: type[Method], source: str) -> str:
    """Who reads a setting that this method and source do not; empty when they do."""
    node = ".".join(name.split(".")[:2])
    settings_cls, method = _METHOD_NODES.get(node, (cls.settings_cls, ""))
    if settings_cls is not cls.settings_cls:
        return method
    if node in _HINT_KNOBS and not cls.uses_hints:
        return "a method that uses hints"
    if node == "hint.refresh_share" and not cls.can_refresh:
        return "sage-light or fixed"
    sources = _SOURCE_KNOBS.get(node, (source,))
    if source not in sources:
        return f"hint.source={' or '.join(sources)} (here: {source})"
    return ""
