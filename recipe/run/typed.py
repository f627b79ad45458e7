"""Convert between typed and plain values: settings, numbers, JSON; never ``nan`` or ``inf``."""

from __future__ import annotations

import difflib
import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from recipe.run.errors import ConfigError

# pydantic's error types, in the words of a YAML file.
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
}


def read_yaml(text: str) -> Any:
    """Return what a YAML text holds, ten times as fast as ``yaml.safe_load``.

    Raises:
        yaml.YAMLError: If it is not YAML.
    """
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name; ``asdict`` copies what is in them too."""
    return {name: getattr(value, name) for name in _names(type(value))}


@functools.cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))


def read_typed(cls: type, node: Mapping[str, Any], path: str) -> Any:
    """Build an instance of a settings class.

    Args:
        cls: A frozen dataclass; its annotations say what each value must be.
        node: The values by name.
        path: Dotted name of the node, for the messages.

    Raises:
        ConfigError: On an unknown key, a value of the wrong type, or what the class itself refuses.
    """
    try:
        check_finite(node, path)
        # As JSON: strict mode takes a list for a tuple and a mapping for a dataclass only there.
        text = json.dumps(node)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{path} holds an unsupported value ({error}); use numbers, text, lists or mappings"
        ) from error
    try:
        return TypeAdapter(cls).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors()[0]
    if isinstance(refused := first.get("ctx", {}).get("error"), ConfigError):
        raise refused
    loc = first["loc"]
    name = path + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in loc)
    if first["type"] == "unexpected_keyword_argument":
        for key in loc[:-1]:
            # A mapping or list of settings classes says of which one.
            inner = [
                each for each in get_args(cls) if isinstance(each, type) and is_dataclass(each)
            ]
            cls = inner[0] if inner else get_type_hints(cls)[str(key)]
        known = sorted(item.name for item in fields(cls))
        near = difflib.get_close_matches(str(loc[-1]), known)
        raise ConfigError(
            f"{name} is not a setting; choose from {', '.join(known)}"
            + (f" (nearest: {', '.join(near)})" if near else "")
        )
    if first["type"] == "literal_error":
        choices = first.get("ctx", {})["expected"].replace("'", "").replace(" or ", ", ")
        raise ConfigError(f"{name}={first['input']!r} is not a choice; choose one of {choices}")
    if first["type"] == "missing":
        raise ConfigError(f"{name} is missing; give it")
    expected = _EXPECTED.get(first["type"], first["msg"])
    raise ConfigError(f"{name}={first['input']!r} must be {expected}")


def finite(text: str) -> float:
    """Return a number of a command line or a file.

    Raises:
        ValueError: If it is not a number, or not finite.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


class SpelledFloat(float):
    """A number that knows how the file wrote it (``0.50``)."""

    spelling: str


def spelled_float(spelling: str) -> SpelledFloat:
    """Return a number of a file with its spelling.

    Raises:
        ValueError: If it is not a finite one.
    """
    value = SpelledFloat(finite(spelling))
    value.spelling = spelling
    return value


def write_json(value: Any) -> str:
    """Return the JSON text of a value in which numbers keep their spelling.

    Where it nests hundreds deep they are written as Python writes them.
    """
    try:
        return _spelled(value)
    except RecursionError:
        return json.dumps(value)


def _spelled(value: Any) -> str:
    if isinstance(value, SpelledFloat):
        return value.spelling
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {_spelled(each)}" for name, each in value.items()]
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_spelled(each) for each in value]) + "]"
    return json.dumps(value)


def unique_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object; of equal names, JSON's own reader keeps the last.

    Raises:
        ValueError: If two names are equal.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        num_times = Counter(name for name, _ in pairs)
        twice = next(name for name, count in num_times.items() if count > 1)
        raise ValueError(f"it names {twice!r} twice; give each field a name of its own")
    return fields


def read_json(text: str | bytes, parse_float: Callable[[str], float] = finite) -> Any:
    """Return the value of a JSON text. ``NaN``, ``Infinity`` and ``1e999`` are no JSON numbers.

    Raises:
        ValueError: If it is not JSON, or contains such a number or a repeated name, or is nested
            too deep.
    """
    try:
        return json.loads(
            text,
            parse_constant=finite,
            parse_float=parse_float,
            object_pairs_hook=unique_pairs,
        )
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
