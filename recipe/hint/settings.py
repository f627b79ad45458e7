"""Read the `hint:` node and the methods' settings, which each method declares on its class."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.hint.hints.base import TeacherSettings
from recipe.hint.methods import BASELINE, METHODS, Method, get_method
from recipe.hint.methods.base import Draws, MethodSettings
from recipe.hint.prompt import Style, Texts, load_texts
from recipe.hint.samples import SampleSettings
from recipe.hint.schema import MAX_LEVELS
from recipe.run.errors import ConfigError
from recipe.run.typed import read_typed
from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.schema import AnswerFormat

BUILT_IN_LEVELS = 3
_GENERATED = ("self_generated", "teacher")
Source = Literal["self_generated", "dataset", "teacher", "solution_prefix"]


def _hint_tokens(response_tokens: int) -> int:
    """Return the longest reply of a hint writer by the longest response: a third more."""
    return min(max(64, response_tokens * 4 // 3), 1024)


def _sampling_s(least_s: float, *factors: int) -> float:
    """Return a limit for responses x tokens on a CPU: 100 tokens a second, at least ``least_s``."""
    return max(float(least_s), math.prod(factors) / 100)


# For presets: limits that follow from lengths.
OmegaConf.register_new_resolver("hint_tokens", _hint_tokens, replace=True)
OmegaConf.register_new_resolver("sampling_s", _sampling_s, replace=True)


@dataclass(frozen=True)
class VerifySettings:
    """How responses are graded (docs/verification.md)."""

    num_workers: int = 2
    timeout_s: float = 10.0
    wall_factor: float = GradeOptions.wall_factor
    worker_memory_mib: int = GradeOptions.worker_memory_mib
    answer_format: AnswerFormat = GradeOptions.answer_format
    program_wall_s: float = GradeOptions.program_wall_s
    program_cpu_s: int = GradeOptions.program_cpu_s
    program_memory_mib: int = GradeOptions.program_memory_mib
    program_isolation: Isolation = GradeOptions.program_isolation


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
    """The longest time each part may take before the run ends with its name, in seconds.

    Raises:
        ConfigError: If no prompt may take as long as one of its groups.
    """

    start_s: float = 1800.0
    queue_s: float = 300.0
    answer_s: float = 300.0
    rollout_s: float = 3600.0
    progress_s: float = 3600.0
    sync_s: float = 600.0
    update_s: float = 7200.0
    save_s: float = 3600.0

    def __post_init__(self) -> None:
        if self.progress_s < self.rollout_s:
            raise ConfigError(
                f"hint.watchdog.progress_s={self.progress_s:g} must be at least "
                f"hint.watchdog.rollout_s={self.rollout_s:g}: one group may take that long, and no "
                f"prompt finishes before its group; raise the one or lower the other"
            )


@dataclass(frozen=True)
class HintSettings:
    """The ``hint:`` node of ``hint_trainer.yaml``, where keys are commented.

    docs/overview.md has the limits of ``watchdog``. ``source`` and ``style`` are ``None`` for the
    method's own. ``methods`` holds what the methods declare, by the name of their node.
    """

    run_dir: str = "outputs/${trainer.experiment_name}"
    seed: int = 1
    seeded_sampling: bool = True
    max_level: int = 3
    source: Source | None = None
    prompts: str | None = None
    style: Style | None = None
    max_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    attempts: int = 3
    too_long: Literal["cut", "skip"] = "cut"
    conditioning: Literal["hinted", "unhinted"] = "hinted"
    leak_policy: Literal["measure", "drop", "redact"] = "measure"
    max_in_flight: int = 128
    dropout_share: float = 0.0
    teacher: TeacherSettings = field(default_factory=TeacherSettings)
    prefix: PrefixSettings = field(default_factory=PrefixSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    samples: SampleSettings = field(default_factory=SampleSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)
    # By settings node, of every method: those of `hint:` are read with it.
    methods: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("max_level", "max_tokens", "attempts", "max_in_flight"):
            if getattr(self, name) < 1:
                raise ConfigError(f"hint.{name}={getattr(self, name)} must be at least 1")
        if not 0 <= self.dropout_share <= 1:
            raise ConfigError(f"hint.dropout_share={self.dropout_share} must be from 0 to 1")
        if self.temperature < 0:
            raise ConfigError(f"hint.temperature={self.temperature} must be at least 0")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"hint.top_p={self.top_p} must be above 0 and at most 1")
        limits = (self.verify, self.watchdog)
        for node, prefix in zip(limits, ("hint.verify", "hint.watchdog"), strict=True):
            for name, value in vars(node).items():
                if not isinstance(value, bool | str) and value <= 0:
                    raise ConfigError(f"{prefix}.{name}={value} must be positive")

    def of(self, cls: type[Method]) -> Any:
        """Return the settings of a method; ``None`` where ``hint:`` has none of its own."""
        return self.methods.get(cls.settings_node.removeprefix("hint."))


def read_settings(node: Mapping[str, Any]) -> HintSettings:
    """Return typed settings from the resolved ``hint:`` node.

    Raises:
        ConfigError: On an unknown or renamed key, a value of the wrong type, or one out of range.
    """
    nodes = {
        name.removeprefix("hint."): cls
        for name, cls in _settings_nodes().items()
        if name.startswith("hint.")
    }
    general = {name: value for name, value in node.items() if name not in nodes}
    if "methods" in general:
        raise ConfigError(f"hint.methods is not a setting; choose from {', '.join(sorted(nodes))}")
    settings = read_typed(HintSettings, general, "hint")
    read = {
        name: read_typed(cls.settings_cls, node.get(name, {}), f"hint.{name}")
        for name, cls in nodes.items()
    }
    return replace(settings, methods=read)


def settings_of(config: DictConfig) -> HintSettings:
    """Return the ``hint:`` node of a run's configuration, resolved and checked."""
    node: Any = OmegaConf.to_container(config.hint, resolve=True)
    return read_settings(node)


def read_texts(settings: HintSettings) -> Texts:
    """Return the prompts' texts, with those of ``hint.prompts`` replaced.

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


def method_defaults() -> dict[str, Any]:
    """Return every method's settings at their defaults, in the shape of the configuration."""
    tree: dict[str, Any] = {}
    for name, cls in _settings_nodes().items():
        node = tree
        for part in name.split("."):
            node = node.setdefault(part, {})
        node.update(asdict(cls.settings_cls()))
    return tree


def _settings_nodes() -> dict[str, type[Method]]:
    return {cls.settings_node: cls for cls in METHODS.values() if cls.settings_node}


def evaluated_method(config: DictConfig) -> str:
    """Return ``trainer.method`` where it has several turns, else the one without hints."""
    name = str(config.trainer.method)
    cls = METHODS.get(name)
    return name if cls and cls.is_multi_turn else BASELINE


def build_method(trainer: Mapping[str, Any], settings: HintSettings) -> Method:
    """Return the method that ``trainer.method`` names, with its own settings.

    Raises:
        ConfigError: If the name is unknown or a setting is out of range.
    """
    cls = get_method(trainer["method"])
    is_prefill = cls.uses_hints and style_of(settings, cls) == "prefill"
    if is_prefill and settings.conditioning == "unhinted":
        raise ConfigError(
            "hint.conditioning=unhinted with hint.style=prefill: the end of a response means "
            "nothing without its beginning; give hinted, or another style"
        )
    own = None
    if cls.settings_node == "trainer":
        names = [item.name for item in fields(cls.settings_cls)]
        own = read_typed(cls.settings_cls, {name: trainer[name] for name in names}, "trainer")
    elif cls.settings_node:
        own = settings.of(cls)
    source = source_of(settings, cls)
    if cls.uses_hints and source in _GENERATED:
        _check_asked_levels(settings)
    method = cls(
        max_level=num_levels(settings, source) if cls.uses_hints else 0,
        settings=own,
        draws=Draws(settings.seed, settings.dropout_share),
    )
    if method.max_level > MAX_LEVELS:
        raise ConfigError(
            f"trainer.method={trainer['method']} would have {method.max_level} hint levels, above "
            f"the {MAX_LEVELS} that are possible; give fewer levels, or fewer pieces of each"
        )
    return method


def _check_asked_levels(settings: HintSettings) -> None:
    if settings.max_level > BUILT_IN_LEVELS and settings.prompts is None:
        raise ConfigError(
            f"hint.max_level={settings.max_level}, but the built-in prompt asks for "
            f"{BUILT_IN_LEVELS} levels; give hint.prompts with a text that asks for as many"
        )


def source_of(settings: HintSettings, method: Method | type[Method]) -> str:
    """Return the source of hints: ``hint.source``, or the one that the method is defined with."""
    return settings.source or method.source


def style_of(settings: HintSettings, method: Method | type[Method]) -> Style:
    """Return how hints enter the prompt: ``hint.style``, or what the method is defined with."""
    return settings.style or method.style


def num_levels(settings: HintSettings, source: str) -> int:
    """Return the levels that the source gives; a method may cut each of them into several."""
    if source == "solution_prefix":
        return len(settings.prefix.ratios)
    return settings.max_level


# General settings that only some sources read.
_SOURCE_SETTINGS: dict[str, tuple[str, ...]] = {
    "hint.max_level": ("self_generated", "dataset", "teacher"),
    "hint.teacher": ("teacher",),
    "hint.prefix": ("solution_prefix",),
    **{f"hint.{name}": _GENERATED for name in ("max_tokens", "temperature", "top_p", "attempts")},
}
# Those that only methods with hints read.
_HINT_SETTINGS = {
    *(f"hint.{name}" for name in ("source", "prompts", "style", "too_long", "conditioning")),
    *(f"hint.{name}" for name in ("leak_policy", "dropout_share")),
    *_SOURCE_SETTINGS,
}


def unread_settings(method_name: str, given: Iterable[str], settings: HintSettings) -> list[str]:
    """Return those of the settings of this package that a run does not read.

    Args:
        method_name: Value of ``trainer.method``.
        given: Dotted names that the user set.
        settings: The ``hint:`` node, which names the source of hints.
    """
    cls = get_method(method_name)
    own = settings.of(cls)
    # Those of another package may be any dataclass.
    known = own if isinstance(own, MethodSettings) else MethodSettings()
    return [name for name in given if _is_unread(name, cls, source_of(settings, cls), known)]


def _is_unread(name: str, cls: type[Method], source: str, own: MethodSettings) -> bool:
    section, _, leaf = name.rpartition(".")
    if section == cls.settings_node:
        return leaf in own.unread()
    node = ".".join(name.split(".")[:2])
    of_others = {other.settings_node for other in METHODS.values()} - {"", "trainer"}
    of_others |= {
        f"trainer.{item.name}"
        for other in METHODS.values()
        if other.settings_node == "trainer"
        for item in fields(other.settings_cls)
    }
    if node in of_others and node != cls.settings_node:
        return True
    if node == "hint.teacher" and own.asks_teacher:
        return False
    if node == "hint.dropout_share":
        return not cls.supports_dropout
    if node == "hint.prompts" and cls.is_multi_turn:
        return False
    return (node in _HINT_SETTINGS and not cls.uses_hints) or source not in _SOURCE_SETTINGS.get(
        node, (source,)
    )
