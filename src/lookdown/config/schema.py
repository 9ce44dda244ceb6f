"""What a dataclass says about the table that it is read from.

It may hold bool, int, float, str, Path, Literal, tuples, dataclasses, `Mapping[str, ...]` and unions of these.
`X | None` is None where the key is left out, since TOML has no word for nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, reduce
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from lookdown.config.toml_text import describe

__all__ = ["AnyFloat", "Key", "expected", "is_array", "is_table", "is_union", "item_types", "keys_of", "members"]

AnyFloat: TypeAlias = Annotated[float, "inf and nan too"]

_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    AnyFloat: "a number, inf or nan",
    str: "text",
    Path: "a path",
    Any: "text in quotes, a number, true or false, an array or a table",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A field of a schema: the type of its value, without None, and whether the key can be left out."""

    type: Any
    optional: bool  # None where it is left out
    required: bool


def keys_of(schema: Any) -> Mapping[str, Key]:
    """Return the keys of a dataclass; a type that TOML cannot hold is a mistake in the program, a TypeError."""
    return _keys_of(schema)


def expected(kind: Any) -> str:
    """Say in words what a type takes; TypeError if it could not be written as TOML and read again."""
    arguments = get_args(kind)
    if kind in _WORDS:
        return _WORDS[kind]
    if get_origin(kind) is Literal and all(type(choice) in (str, int, bool) for choice in arguments):
        return " or ".join(describe(choice) for choice in arguments)
    if is_union(kind) and not {str, Path} <= {*arguments} and sum(map(is_table, arguments)) < 2:
        return " or ".join(expected(member) for member in arguments)
    if is_array(kind) and arguments:
        items = [expected(item) for item in arguments if item is not Ellipsis]
        count = "" if arguments[-1] is Ellipsis else f" of {len(arguments)}"
        return f"an array{count} ({f'each {items[0]}' if len({*items}) == 1 else ', '.join(items)})"
    if is_dataclass(kind):
        keys_of(kind)
        return "a table"
    if is_table(kind) and arguments[0] is str:
        return "a table" if arguments[1] is Any else f"a table (each {expected(arguments[1])})"
    raise TypeError(f"a recipe cannot hold {kind}; see lookdown.config.schema for the types that it can")


def members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that it is."""
    return get_args(kind) if is_union(kind) else (kind,)


def item_types(kind: Any, count: int) -> tuple[Any, ...]:
    """Return the types of the items of a tuple; `count` of them where it may have any number."""
    arguments = get_args(kind)
    return (arguments[0],) * count if arguments[-1] is Ellipsis else arguments


def is_union(kind: Any) -> bool:
    """Whether a type is one of several."""
    return get_origin(kind) in (Union, UnionType)


def is_array(kind: Any) -> bool:
    """Whether a type is an array in TOML."""
    return get_origin(kind) is tuple


def is_table(kind: Any) -> bool:
    """Whether a type is a table in TOML."""
    return is_dataclass(kind) or get_origin(kind) in (Mapping, dict)


@cache
def _keys_of(schema: Any) -> Mapping[str, Key]:
    types = get_type_hints(schema, include_extras=True)
    keys = {}
    for field in fields(schema):
        if not field.init:
            continue
        kinds = [kind for kind in members(types[field.name]) if kind is not NoneType]
        optional = len(kinds) < len(members(types[field.name]))
        without_default = field.default is MISSING and field.default_factory is MISSING
        if optional and not without_default and field.default is not None:
            raise TypeError(f"{schema.__name__}.{field.name} may be None, so its default must be None")
        keys[field.name] = Key(reduce(operator.or_, kinds), optional, without_default and not optional)
        expected(keys[field.name].type)
    return keys
