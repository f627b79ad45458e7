"""Convert between typed and plain values: settings, numbers, JSON; never ``nan`` or ``inf``."""

from __future__ import annotations

import json
import math
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from recipe.run.errors import ConfigError, one_line

_MEMBERS = frozenset({"str", "int", "float", "list[str]"})  # of a union, as pydantic names them


_FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FASTEST):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(str(key.value) for key, _ in node.value)
        if twice := [key for key, count in keys.items() if count > 1]:  # YAML keeps the last
            raise yaml.YAMLError(f"{twice[0]} is there twice below line {node.start_mark.line}")
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Any:
    """Return what a YAML text holds, as fast as can be; ``ConfigError`` if it is none."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(one_line(error)) from error


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
        if isinstance(own := error.errors()[0].get("ctx", {}).get("error"), ConfigError):
            raise own from None
        raise ConfigError(fault_of(error, path)) from None


def fault_of(error: ValidationError, path: str = "") -> str:
    """Return the first fault that pydantic found, in this package's words."""
    first = error.errors()[0]
    where = [key for key in first["loc"] if key not in _MEMBERS]
    keys = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where)
    name = (path + keys).removeprefix(".")
    if first["type"] == "unexpected_keyword_argument":
        return f"{name} is not a setting"
    if first["type"] in ("missing", "missing_argument"):
        return f"{name} is missing"
    must = first["msg"].replace("Input should be ", "must be ")  # such as "must be greater than 0"
    return f"{name}={first['input']!r}: {must}".replace(": must be", " must be")


def at_least_1(text: str) -> int:
    """Return a whole number of a command line, such as how many; refuse what is below 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} must be a whole number of at least 1")
    return int(text)


def finite(text: str) -> float:
    """Return a number of a command line or a file; ``ValueError`` if it is none, or not finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. ``NaN``, ``Infinity`` and ``1e999`` are no JSON numbers."""
    try:
        return json.loads(text, parse_constant=finite, parse_float=finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
