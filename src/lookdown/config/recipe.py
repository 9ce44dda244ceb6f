"""A recipe: a TOML file, with what was typed after `--set` over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from lookdown.config.building import build, convert
from lookdown.config.schema import expected, is_table, keys_of, members
from lookdown.config.toml_text import parse_file, parse_value
from lookdown.config.unknown_keys import refuse_unknown
from lookdown.errors import RecipeError

__all__ = ["read_recipe"]

T = TypeVar("T")


def read_recipe(schema: type[T], file: Path, overrides: Sequence[str] = ()) -> T:
    """Read a recipe into a dataclass; each override is `table.key=value`, and of two for one key the later counts.

    The value is TOML; what is not TOML is text, where the key takes text, a path or one of several words.
    """
    values = parse_file(file)
    for override in overrides:
        try:
            _apply(override, schema, values)
        except RecipeError as error:
            raise RecipeError(f"--set {override}: {error}") from error
    try:
        return build(schema, values)
    except RecipeError as error:
        typed = f" with {' '.join(f'--set {override}' for override in overrides)}" if overrides else ""
        raise RecipeError(f"{file}{typed}: {error}") from error


def _apply(override: str, schema: type, values: dict[str, Any]) -> None:
    name, equals, text = (part.strip() for part in override.partition("="))
    path = [part.strip() for part in name.split(".")]
    if not equals or "" in path:
        raise RecipeError("a key and a value are needed; write --set table.key=value")
    refuse_unknown(schema, _nested(path, {}))
    value = _checked_value(_type_at(schema, path), text, name)
    refuse_unknown(schema, _nested(path, value))  # a table may have been typed
    table = values
    for part in path[:-1]:
        if not isinstance(table.get(part), dict):
            table[part] = {}
        table = table[part]
    table[path[-1]] = value


def _nested(path: Sequence[str], value: Any) -> Any:
    for part in reversed(path):
        value = {part: value}
    return value


def _type_at(schema: type, path: Sequence[str]) -> Any:
    kind: Any = schema
    for depth, part in enumerate(path):
        table = next(filter(is_table, members(kind)), None)
        if table is not None:
            kind = keys_of(table)[part].type if is_dataclass(table) else get_args(table)[1]
        elif kind is not Any:
            raise RecipeError(f"{'.'.join(path[:depth])} has no keys; it must be {expected(kind)}, set as a whole")
    return kind


def _checked_value(kind: Any, text: str, name: str) -> Any:
    kinds = members(kind)
    try:
        text.encode()
        value = parse_value(text)
    except UnicodeEncodeError as error:
        raise RecipeError("the value is not Unicode, which a recipe must be; name things otherwise") from error
    except ValueError as error:
        if not any(member in (str, Path) or get_origin(member) is Literal for member in kinds):
            raise RecipeError(f"{name} must be {expected(kind)}, and {text or 'nothing'} is no TOML value") from error
        value = text
    try:
        convert(kind, value, name)
    except RecipeError as error:
        if isinstance(value, str) or not {str, Path} & {*kinds}:
            raise
        raise RecipeError(f"{error}; if it is text, write --set '{name}=\"{text}\"'") from error
    return value
