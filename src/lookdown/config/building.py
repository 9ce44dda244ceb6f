"""Plain values into a dataclass, checked one by one, and back to TOML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from lookdown.config.schema import AnyFloat, expected, is_array, is_table, is_union, item_types, keys_of
from lookdown.config.toml_text import describe, fits_in_64_bits, write_table
from lookdown.config.unknown_keys import below, refuse_unknown
from lookdown.errors import LookdownError, RecipeError

__all__ = ["build", "convert", "to_toml"]

T = TypeVar("T")


def build(schema: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from parsed TOML; unknown keys and values of another type are refused by their path."""
    refuse_unknown(schema, values)
    built: T = _construct(schema, values, "")
    return built


def to_toml(value: object) -> str:
    """Write a dataclass as TOML from which `build` makes an equal one; a free table should hold tuples, not lists."""
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"only a dataclass is a recipe, not {value!r}")
    return write_table(_plain(value))


def convert(kind: Any, value: Any, path: str) -> Any:
    """Return a value as a type of a schema wants it; RecipeError names the path, what was expected and found."""
    if kind is Any:
        return _convert_free(value, path)
    if is_union(kind):
        return _convert_union(kind, value, path)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return _construct(kind, value, path)
    if is_table(kind) and isinstance(value, Mapping):
        return {_name(name, path): convert(get_args(kind)[1], part, below(path, name)) for name, part in value.items()}
    if is_array(kind) and isinstance(value, list | tuple):
        items = item_types(kind, len(value))
        if len(items) == len(value):
            return tuple(
                convert(item, part, f"{path}[{i}]") for i, (item, part) in enumerate(zip(items, value, strict=True))
            )
    return _convert_scalar(kind, value, path)


def _construct(schema: Any, values: Mapping[str, Any], path: str) -> Any:
    arguments = {}
    for name, key in keys_of(schema).items():
        if name in values and not (key.optional and values[name] is None):
            arguments[name] = convert(key.type, values[name], below(path, name))
        elif key.required:
            raise RecipeError(f"{below(path, name)} is missing; give it {expected(key.type)}")
        elif key.optional:
            arguments[name] = None
    try:
        return schema(**arguments)
    except (LookdownError, ValueError) as error:
        raise RecipeError(f"{path}: {error}" if path else str(error)) from error


def _convert_scalar(kind: Any, value: Any, path: str) -> Any:
    if kind in (float, AnyFloat) and isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            if math.isfinite(number := float(value)) or kind == AnyFloat:
                return number
    if kind is int and fits_in_64_bits(value):
        return value
    if kind in (bool, str) and isinstance(value, kind):
        return value
    if kind is Path and isinstance(value, str | Path) and value != "":  # else the current folder, by accident
        return Path(value)
    if get_origin(kind) is Literal:
        for choice in get_args(kind):
            if type(choice) is type(value) and choice == value:  # 1 is neither true nor 1.0
                return choice
    raise _mismatch(expected(kind), value, path)


def _convert_union(kind: Any, value: Any, path: str) -> Any:
    """Take the member that leaves the value as it is, else the first that can hold it."""
    candidates = get_args(kind)
    if isinstance(value, Mapping | list | tuple):
        candidates = tuple(filter(is_table if isinstance(value, Mapping) else is_array, candidates))
        if len(candidates) == 1:  # what it has to say is closer to the mistake
            return convert(candidates[0], value, path)
    fitting = []
    for candidate in candidates:
        with suppress(RecipeError):
            fitting.append(convert(candidate, value, path))
    if not fitting:
        raise _mismatch(expected(kind), value, path)
    return next((found for found in fitting if type(found) is type(value)), fitting[0])


def _convert_free(value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return {_name(name, path): _convert_free(part, below(path, name)) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_convert_free(part, f"{path}[{i}]") for i, part in enumerate(value))
    kind = next((kind for kind in (bool, int, float, str) if isinstance(value, kind)), str)
    return _convert_scalar(kind, value, path)


def _name(name: object, path: str) -> str:
    if not isinstance(name, str):
        raise RecipeError(f"{below(path, name)} is not a key: it must be text, found {describe(name)}")
    return name


def _mismatch(wanted: str, value: object, path: str) -> RecipeError:
    return RecipeError(f"{path} must be {wanted}, found {describe(value)}")


def _plain(value: Any) -> Any:
    """Return dataclasses as mappings, at any depth; None is a key left out, where it may be."""
    if is_dataclass(value):
        parts = {name: (getattr(value, name), key.optional) for name, key in keys_of(type(value)).items()}
        return {name: _plain(part) for name, (part, optional) in parts.items() if not (optional and part is None)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
