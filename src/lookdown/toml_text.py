"""TOML as text: files and values that are read, tables that are written, and values named in a sentence."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookdown.errors import RecipeError

__all__ = ["describe", "misfit", "read_file", "read_value", "write_table"]

_DESCRIBED_CHARACTERS = 60


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
