"""Convert between typed and plain values: settings, numbers, JSON; never ``nan`` or ``inf``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from recipe.run.errors import ConfigError


def read_yaml(text: str) -> Any:
    """Return what a YAML text holds, ten times as fast as ``yaml.safe_load``."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name; ``asdict`` copies what is in them too."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def read_typed(cls: type, node: Mapping[str, Any], path: str) -> Any:
    """Build a frozen dataclass from its values by name; ``path`` names the node in messages."""
    try:
        # As JSON: strict mode takes a list for a tuple and a mapping for a dataclass only there.
        text = json.dumps(node, default=str)
        return TypeAdapter(cls).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors()[0]
    if isinstance(refused := first.get("ctx", {}).get("error"), ConfigError):
        raise refused
    name = path + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
    if first["type"] == "unexpected_keyword_argument":
        raise ConfigError(f"{name} is not a setting")
    told = first["msg"].removeprefix("Input should be ")  # such as "greater than 0"
    raise ConfigError(f"{name}={first['input']!r} must be {told}")


def finite(text: str) -> float:
    """Return a number of a command line or a file; ``ValueError`` if it is none, or not finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. ``NaN``, ``Infinity`` and ``1e999`` are no JSON numbers."""
    return json.loads(text, parse_constant=finite, parse_float=finite)
