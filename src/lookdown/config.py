"""Recipes: TOML into frozen dataclasses, strictly, and back.

The dataclasses are the schema, the defaults and the manual; pydantic checks values against their annotations. A field
that may be None has None as its default, since TOML has no word for nothing.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import TypeAliasType

from lookdown.errors import RecipeError
from lookdown.suggestions import nearest

__all__ = ["FreeTable", "NonEmptyPath", "build", "read_recipe", "to_toml"]

_DESCRIBED_CHARACTERS = 60  # of a value in a sentence

T = TypeVar("T")
Keys = tuple[str | int, ...]  # of tables and arrays, from the top of the document to a value


def _refuse_empty(path: object) -> object:
    if not isinstance(path, str) or not path:  # an empty path would be the current folder, by accident
        raise PydanticCustomError("path_type", "a path")
    return path


NonEmptyPath = Annotated[Path, BeforeValidator(_refuse_empty)]
FreeValue = TypeAliasType("FreeValue", "bool | int | float | str | tuple[FreeValue, ...] | dict[str, FreeValue]")
FreeTable = Mapping[str, FreeValue]  # its keys are not part of the schema

_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "a table",
    "dict_type": "a table",
    "finite_number": "a number",
    "float_type": "a number",
    "int_type": "a whole number",
    "path_type": "a path",
    "string_type": "text",
    "tuple_type": "an array",
}


class _KeyedError(RecipeError):
    """What is wrong at one key."""

    def __init__(self, keys: Keys, sentence: str, *, wants_text: bool = False) -> None:
        super().__init__(f"{_path(keys)} {sentence}")
        self.keys, self.wants_text = keys, wants_text


def read_recipe(schema: type[T], file: Path, overrides: Sequence[str] = ()) -> T:
    """Read a recipe from a TOML file.

    schema: the dataclass to build.
    overrides: `table.key=value` each; if two set the same key, the later one counts. A value that is not TOML
        is text.
    """
    values = read_file(file)
    typed: dict[tuple[str, ...], tuple[str, str]] = {}
    for override in overrides:
        name, equals, text = (part.strip() for part in override.partition("="))
        keys = tuple(part.strip() for part in name.split("."))
        if not equals or "" in keys:
            raise RecipeError(f"override {override}: a key and a value are needed; write table.key=value")
        _put(values, keys, read_value(text))
        typed[keys] = override, f"'{name}=\"{text}\"'"
    try:
        return build(schema, values)
    except _KeyedError as error:
        for path, (override, quoted) in reversed(typed.items()):
            if all(one == other for one, other in zip(path, error.keys, strict=False)):
                advice = f"; if it is text, write {quoted}" if error.wants_text else ""
                raise RecipeError(f"override {override}: {error}{advice}") from error
        raise RecipeError(f"{file}: {error}") from error
    except RecipeError as error:  # a rule of a whole table, which several values may have broken
        changes = f" with override {', '.join(overrides)}" if overrides else ""
        raise RecipeError(f"{file}{changes}: {error}") from error


def build(schema: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from parsed TOML; RecipeError names the key, what is expected and what was found."""
    document = json.dumps([_plain(values)])  # as JSON, since pydantic makes no tuple or dataclass of Python's strictly
    try:
        return cast(T, _adapter(cast(Any, schema)).validate_json(document)[0])
    except ValidationError as error:
        raise _explained(schema, values, error) from error


def to_toml(value: object) -> str:
    """Write a dataclass as TOML from which `build` makes an equal one."""
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"only a dataclass is a recipe, not {value!r}")
    return write_table(_plain(value))


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    document: Any = tuple[schema]  # a dataclass alone takes no settings
    return TypeAdapter(document, config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))


def _put(table: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        if not isinstance(table.get(key), dict):
            table[key] = {}
        table = table[key]
    table[keys[-1]] = value


def _plain(value: Any, keys: Keys = ()) -> Any:
    """Return a value as TOML and JSON both hold it; RecipeError names what they do not hold."""
    if is_dataclass(value):
        present = [field for field in fields(value) if field.init]
        unset = {field.name for field in present if field.default is None and getattr(value, field.name) is None}
        value = {field.name: getattr(value, field.name) for field in present if field.name not in unset}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or misfit(key):
                raise _KeyedError(keys, f"has a key that is not text: {key!r}")
        return {key: _plain(part, (*keys, key)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, (*keys, number)) for number, part in enumerate(value)]
    value = str(value) if isinstance(value, Path) else value
    if reason := misfit(value):
        raise _KeyedError(keys, f"cannot hold {reason}; TOML has no such value")
    return value


def _explained(schema: type, values: Mapping[str, Any], refusal: ValidationError) -> RecipeError:
    """Return the error of an unknown key, else of the first value that does not fit, where that shows deepest."""
    errors = [(_keys(error, values), error) for error in refusal.errors(include_url=False)]
    for keys, error in errors:
        if error["type"] == "unexpected_keyword_argument":
            return _KeyedError(keys, f"is unknown; {_suggestion(schema, keys)}")
    first = errors[0][0]
    keys = max((keys for keys, _ in errors if keys[: len(first)] == first), key=len)
    kinds = {error["type"]: error for other, error in errors if other == keys}  # several for a union
    if "value_error" in kinds:
        rule = kinds["value_error"]["ctx"]["error"]
        return RecipeError(f"{_path(keys)}: {rule}" if keys else str(rule))
    if "missing" in kinds:
        return _KeyedError(keys, "is missing; add it")
    if "finite_number" in kinds:
        kinds = {"finite_number": kinds["finite_number"]}
    expected = " or ".join(dict.fromkeys(map(_expected, kinds.values())))
    actual = describe(next(iter(kinds.values()))["input"])
    wants_text = not {"string_type", "path_type"}.isdisjoint(kinds)
    return _KeyedError(keys, f"must be {expected}, found {actual}", wants_text=wants_text)


def _expected(error: ErrorDetails) -> str:
    if error["type"] == "literal_error":
        return str(error["ctx"]["expected"]).replace("'", '"')
    if error["type"] == "too_long":
        return f"an array of {error['ctx']['max_length']}"
    return _EXPECTED.get(error["type"], error["msg"])


def _keys(error: ErrorDetails, values: Any) -> Keys:
    """Return where an error is in the document, without the types of a union, which pydantic names as well."""
    keys: Keys = ()
    for key in error["loc"][1:]:
        try:
            values = values[key]
        except (LookupError, TypeError):
            continue
        keys = (*keys, key)
    return (*keys, error["loc"][-1]) if error["type"] == "missing" else keys


def _path(keys: Keys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def _suggestion(schema: type, keys: Keys) -> str:
    """Name the nearest key of the same table, else of any table."""
    *parents, unknown = keys
    tables = dict(_tables(schema, ()))
    names = tuple(parent for parent in parents if isinstance(parent, str))
    siblings = tables[max((table for table in tables if names[: len(table)] == table), key=len)]
    if close := nearest(unknown, siblings):
        return f"did you mean {_path((*parents, close))}?"
    if close := nearest(unknown, [name for known in tables.values() for name in known]):
        above = " (above the first [table])" if parents else ""
        paths = [_path((*table, close)) + ("" if table else above) for table in tables if close in tables[table]]
        return f"did you mean {' or '.join(paths)}?"
    return f"known here: {', '.join(siblings) or 'nothing, leave it out'}"


def _tables(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Find the tables of a schema, with the names of their keys."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind) if field.init]
        yield path, names
        for name in names:
            yield from _tables(hints[name], (*path, name))
    for member in get_args(kind):  # of a union, an array or a table of tables
        yield from _tables(member, path)


def read_file(file: Path) -> dict[str, Any]:
    """Read a TOML file; RecipeError names the file, the line and what to do."""
    try:
        data = file.read_bytes()
        return tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise RecipeError(f"{file} cannot be read ({error.strerror}); name a recipe, a file with TOML in it") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise RecipeError(f"{file}, line {line}: not UTF-8; save the file in that encoding") from error
    except tomllib.TOMLDecodeError as error:
        reason, _, position = str(error).rpartition(" (at ")
        line = int((re.findall(r"\d+", position) or [data.rstrip().count(b"\n") + 1])[0])  # or at the end of the file
        raise RecipeError(
            f"{file}, line {line}: {reason}; correct it there (a line is key = value, and text needs quotes)"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise RecipeError(f"{file} cannot be read as TOML ({error}); shorten what is too long for it") from error


def read_value(text: str) -> Any:
    """Read what may stand to the right of `key =`; whatever is not one TOML value is text."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if [*parsed] == ["value"] else text


def write_table(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Write a mapping as TOML; its tables, which are mappings too, come after its other keys."""
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_inline(value)}\n" for key, value in values.items() if key not in tables]
    if path and (lines or not tables):
        lines.insert(0, f"[{'.'.join(map(_key, path))}]\n")
    sections = ["".join(lines)] if lines else []
    return "\n".join(sections + [write_table(table, (*path, key)) for key, table in tables.items()])


def describe(value: Any) -> str:
    """Return a value as TOML has it, shortened for a sentence."""
    text = _inline(value)
    return text if len(text) <= _DESCRIBED_CHARACTERS else f"{text[:_DESCRIBED_CHARACTERS]}..."


def misfit(value: object) -> str | None:
    """Return what keeps a text, number or boolean out of TOML and its readers; None where nothing does."""
    if isinstance(value, str):
        return "text that is not Unicode" if re.search(r"[\ud800-\udfff]", value) else None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else "a whole number of more than 64 bits"
    return None if isinstance(value, float) else f"a value of type {type(value).__name__}"


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(float(value))  # inf and nan as TOML spells them
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML escapes as well


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _inline(key)
