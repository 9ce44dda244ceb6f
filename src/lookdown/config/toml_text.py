"""TOML as text: a file read with errors that name the line, values named in a sentence, tables written."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookdown.errors import RecipeError

__all__ = ["describe", "fits_in_64_bits", "parse_file", "parse_value", "write_table"]

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_SHOWN = 60


def parse_file(file: Path) -> dict[str, Any]:
    """Parse a file; RecipeError names what cannot be read, the line and the remedy."""
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise RecipeError(f"{file} is missing; name a recipe, a file that ends with .toml") from error
    except OSError as error:
        raise RecipeError(f"{file} cannot be read ({error.strerror}); name a recipe, a file with TOML in it") from error
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise RecipeError(f"{file}, line {line}: not UTF-8; save the file in that encoding") from error
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        numbers = re.findall(r"\d+", place) or [str(data.rstrip().count(b"\n") + 1)]  # none at the end of the document
        raise RecipeError(
            f"{file}, line {numbers[0]}: {reason}; correct it there (a line is key = value, and text needs quotes)"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise RecipeError(f"{file} cannot be read as TOML ({error}); shorten what is too long for it") from error


def parse_value(text: str) -> Any:
    """Parse what may stand to the right of `key =`; ValueError if it is anything else."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except RecursionError as error:
        raise ValueError("too many brackets") from error
    if [*parsed] != ["value"]:
        raise ValueError("more than a value")
    return parsed["value"]


def describe(value: object) -> str:
    """Name a value in a sentence about it."""
    match value:
        case None:
            return "nothing"
        case str():
            quoted = _quote(value)
            return quoted if len(quoted) <= _SHOWN else f'{quoted[:_SHOWN]}..."'
        case bool():
            return str(value).lower()
        case int():
            return str(value) if fits_in_64_bits(value) else "a whole number of more than 64 bits"
        case float():
            return repr(float(value))
        case Mapping():
            return "a table"
        case list() | tuple():
            return f"an array of {len(value)}"
        case datetime.date() | datetime.time():
            return f"the date or time {value.isoformat()}, which text in quotes could hold"
    return f"a {type(value).__name__}"


def fits_in_64_bits(value: object) -> bool:
    """Whether a value is a whole number that every reader of TOML can hold; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def write_table(values: Mapping[str, Any]) -> str:
    """Write a mapping of plain values as a TOML document, tables after the keys of their parent."""
    return "\n\n".join(_sections(values, ())) + "\n"


def _sections(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{_key(name)} = {_inline(value, (*path, name))}" for name, value in values.items() if name not in tables]
    if path and (lines or not tables):
        lines.insert(0, f"[{'.'.join(map(_key, path))}]")
    below = [section for name, table in tables.items() for section in _sections(table, (*path, name))]
    return ["\n".join(lines), *below] if lines else below


def _inline(value: object, path: tuple[str, ...]) -> str:
    match value:
        case Mapping():
            return (
                "{" + ", ".join(f"{_key(name)} = {_inline(part, (*path, name))}" for name, part in value.items()) + "}"
            )
        case list() | tuple():
            return "[" + ", ".join(_inline(part, path) for part in value) + "]"
        case str() | Path() if not re.search(r"[\ud800-\udfff]", str(value)):
            return _quote(str(value))
        case bool() | float():
            return describe(value)
        case int() if fits_in_64_bits(value):
            return str(int(value))
    raise RecipeError(f"{'.'.join(map(str, path))} cannot be written: TOML does not hold {describe(value)}")


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise RecipeError(f"{name!r} cannot be written as a key: it must be text")
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _inline(name, (name,))


def _quote(text: str) -> str:
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04X}" if character < " " or character == "\x7f" else character
