"""Read the `hint:` node and the methods' settings, which each method declares on its class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import DictConfig, OmegaConf
from pydantic import Field

from recipe.hint.hints.base import TeacherSettings
from recipe.hint.methods import Method, every_method, get_method
from recipe.hint.prompt import Style, Texts, load_texts
from recipe.hint.samples import SampleSettings
from recipe.run.config import check
from recipe.run.errors import ConfigError, one_line
from recipe.run.typed import read_typed, read_yaml
from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.schema import AnswerFormat

BUILT_IN_LEVELS = 3

# For presets: the longest reply of a hint writer is a third longer than the longest response, ...
OmegaConf.register_new_resolver(
    "hint_tokens", lambda tokens: min(max(64, tokens * 4 // 3), 1024), replace=True
)
# ... and responses x tokens on a CPU may take as long as at 100 tokens a second, at least `least`.
OmegaConf.register_new_resolver(
    "sampling_s", lambda least, *factors: max(float(least), math.prod(factors) / 100), replace=True
)

_Count = Annotated[int, Field(ge=1)]
_Positive = Annotated[float, Field(gt=0)]
_Part = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class VerifySettings:
    """How responses are graded (docs/verification.md)."""

    num_workers: _Count = 2
    timeout_s: _Positive = 10.0
    wall_factor: _Positive = GradeOptions.wall_factor
    worker_memory_mib: _Count = GradeOptions.worker_memory_mib
    answer_format: AnswerFormat = GradeOptions.answer_format
    program_wall_s: _Positive = GradeOptions.program_wall_s
    program_cpu_s: _Count = GradeOptions.program_cpu_s
    program_memory_mib: _Count = GradeOptions.program_memory_mib
    program_isolation: Isolation = GradeOptions.program_isolation


@dataclass(frozen=True)
class PrefixSettings:
    """How much of the solution each level of source ``solution_prefix`` shows."""

    ratios: Annotated[tuple[_Part, ...], Field(min_length=1)] = (0.25, 0.5, 0.75)
    unit: Literal["char", "sentence"] = "char"


@dataclass(frozen=True)
class WatchdogSettings:
    """The longest time each part may take before the run ends with its name, in seconds."""

    start_s: _Positive = 1800.0
    queue_s: _Positive = 300.0
    answer_s: _Positive = 300.0
    rollout_s: _Positive = 3600.0
    progress_s: _Positive = 3600.0
    sync_s: _Positive = 600.0
    update_s: _Positive = 7200.0
    save_s: _Positive = 3600.0


@dataclass(frozen=True)
class HintSettings:
    """The ``hint:`` node of ``hint_trainer.yaml``, where keys are commented.

    ``source`` and ``style`` are ``None`` for the method's own. ``methods`` holds the nodes of the
    methods, by their name, as they were given.
    """

    run_dir: str = "outputs/${trainer.experiment_name}"
    seed: int = 1
    seeded_sampling: bool = True
    max_level: _Count = 3
    source: Literal["self_generated", "dataset", "teacher", "solution_prefix"] | None = None
    prompts: str | None = None
    style: Style | None = None
    max_tokens: _Count = 1024
    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    attempts: _Count = 3
    too_long: Literal["cut", "skip"] = "cut"
    conditioning: Literal["hinted", "unhinted"] = "hinted"
    leak_policy: Literal["measure", "drop"] = "measure"
    max_in_flight: _Count = 128
    teacher: TeacherSettings = field(default_factory=TeacherSettings)
    prefix: PrefixSettings = field(default_factory=PrefixSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    samples: SampleSettings = field(default_factory=SampleSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)
    methods: Mapping[str, Any] = field(default_factory=dict)

    def of(self, cls: type[Method]) -> Any:
        """Return the typed settings of a method; their defaults where ``hint:`` has none."""
        node = cls.settings_node
        return read_typed(cls.settings_cls, self.methods.get(node.removeprefix("hint."), {}), node)


def read_settings(node: Mapping[str, Any]) -> HintSettings:
    """Return typed settings from the resolved ``hint:`` node; every method's node is checked.

    Raises:
        ConfigError: If a value is out of range, or a name is no setting.
    """
    settings, nodes = _read(node), _settings_nodes()
    for place, cls in nodes.items():
        if place.startswith("hint."):
            settings.of(cls)
    for name in settings.methods:
        check(f"hint.{name}" in nodes, f"hint.{name} is not a setting")
    return settings


def settings_of(config: DictConfig) -> HintSettings:
    """Return the same of a run's configuration, where only the run's own method is loaded."""
    node: Any = OmegaConf.to_container(config.hint, resolve=True)
    return _read(node)


def _read(node: Mapping[str, Any]) -> HintSettings:
    known = {item.name for item in fields(HintSettings)} - {"methods"}
    general = {name: value for name, value in node.items() if name in known}
    methods = {name: value for name, value in node.items() if name not in known}
    return replace(read_typed(HintSettings, general, "hint"), methods=methods)


def read_texts(settings: HintSettings) -> Texts:
    """Return the prompts' texts, with those of the file ``hint.prompts`` replaced."""
    if settings.prompts is None:
        return Texts()
    name = f"hint.prompts={settings.prompts}"
    try:
        mapping = read_yaml(Path(settings.prompts).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: {one_line(error, 300)}") from error
    return load_texts(mapping, name)


def method_defaults() -> dict[str, Any]:
    """Return every method's settings at their defaults, in the shape of the configuration."""
    tree: dict[str, Any] = {}
    for name, cls in _settings_nodes().items():
        section, _, key = name.partition(".")
        node = tree.setdefault(section, {})
        (node.setdefault(key, {}) if key else node).update(asdict(cls.settings_cls()))
    return tree


def _settings_nodes() -> dict[str, type[Method]]:
    return {cls.settings_node: cls for cls in every_method().values() if cls.settings_node}


def build_method(trainer: Mapping[str, Any], settings: HintSettings) -> Method:
    """Return the method that ``trainer.method`` names, with its own settings."""
    cls = get_method(trainer["method"])
    source, levels = settings.source or cls.source, settings.max_level
    if source == "solution_prefix":
        levels = len(settings.prefix.ratios)
    if cls.uses_hints:
        if settings.conditioning == "unhinted" and (settings.style or cls.style) == "prefill":
            raise ConfigError(
                "hint.conditioning=unhinted with hint.style=prefill: the end of a response means "
                "nothing without its beginning; give hinted, or another style"
            )
        is_asked = source in ("self_generated", "teacher") and settings.prompts is None
        if is_asked and levels > BUILT_IN_LEVELS:
            raise ConfigError(
                f"hint.max_level={levels}, but the built-in prompt asks for {BUILT_IN_LEVELS} "
                f"levels; give hint.prompts with a text that asks for as many"
            )
    own = settings.of(cls)
    if cls.settings_node == "trainer":
        names = [item.name for item in fields(cls.settings_cls)]
        own = read_typed(cls.settings_cls, {name: trainer[name] for name in names}, "trainer")
    return cls(max_level=levels if cls.uses_hints else 0, settings=own)


# General settings that only methods with hints read, but for the texts of several turns.
_OF_HINTS = {
    f"hint.{name}"
    for name in (
        *("source", "prompts", "style", "too_long", "conditioning", "leak_policy", "max_level"),
        *("prefix", "teacher", "max_tokens", "temperature", "top_p", "attempts"),
    )
}


def unread_settings(method_name: str, given: Iterable[str], settings: HintSettings) -> list[str]:
    """Return which of the ``given`` dotted names are of other methods, or of hints without any."""
    cls = get_method(method_name)
    idle = {
        f"{node}.{item.name}"
        for node, other in _settings_nodes().items()
        if node != cls.settings_node
        for item in fields(other.settings_cls)
    }
    if not cls.uses_hints:
        idle |= _OF_HINTS
        idle -= {"hint.teacher"} if settings.of(cls).asks_teacher else set()
        idle -= {"hint.prompts"} if cls.is_multi_turn else set()
    heads = tuple(f"{name}." for name in idle)
    return [name for name in given if name in idle or name.startswith(heads)]
