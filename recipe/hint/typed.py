"""What comes from outside with a type: settings, numbers, JSON; never ``nan`` or ``inf``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from recipe.hint.errors import ConfigError


def read_typed(cls: type, node: Mapping[str, Any], path: str) -> Any:
    """An instance of a settings class.

    Args:
        cls: A frozen dataclass; its annotations say what each value must be.
        node: The values by name.
        path: Dotted name of the node, for the messages.

    Raises:
        ConfigError: On an unknown key or a value of the wrong type.
    """
    hints = get_type_hints(cls)
    known = {item.name for item in fields(cls)}
    for name in node:
        if name not in known:
            raise ConfigError(
                f"{path}.{name} is not a setting; choose from {', '.join(sorted(known))}"
            )
    return cls(
        **{name: _value(hints[name], value, f"{path}.{name}") for name, value in node.items()}
    )


def finite(text: str) -> float:
    """A number of a command line or a file.

    Raises:
        ValueError: If it is none, or not a finite one.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. ``NaN``, ``Infinity`` and ``1e999`` are no JSON numbers.

    Raises:
        ValueError: If it is no JSON, holds such a number, or is nested too deep.
    """
    try:
        return json.loads(text, parse_constant=finite, parse_float=finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def check_finite(node: Any, path: str) -> None:
    """Refuse ``nan`` and ``inf`` anywhere in plain mappings and lists.

    Raises:
        ConfigError: Naming the first one by its dotted path.
    """
    if isinstance(node, float) and not math.isfinite(node):
        raise ConfigError(f"{path}={node} must be a finite number")
    if isinstance(node, Mapping):
        for name, value in node.items():
            check_finite(value, f"{path}.{name}" if path else str(name))
    elif isinstance(node, list | tuple):
        for place, value in enumerate(node):
            check_finite(value, f"{path}[{place}]")


def _value(kind: Any, value: Any, path: str) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{path}={value!r} must be a mapping")
        return read_typed(kind, value, path)
    choices = get_args(kind)
    if type(None) in choices:
        rest = [each for each in choices if each is not type(None)]
        return None if value is None else _value(rest[0], value, path)
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{path}={value!r} must be a list")
        return tuple(
            _value(choices[0], each, f"{path}[{place}]") for place, each in enumerate(value)
        )
    if get_origin(kind) is Literal:
        if value not in choices:
            raise ConfigError(
                f"{path}={value!r} is not a choice; choose one of {', '.join(choices)}"
            )
        return value
    return _plain(kind, value, path)


def _plain(kind: type, value: Any, path: str) -> Any:
    check_finite(value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{path}={value!r} must be {kind.__name__}")
    return value
