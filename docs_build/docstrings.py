"""Docstrings of this package as mkdocstrings reads them, when the API reference is built.

Our docstrings describe an argument by a line `name: what it is`, put the fields of a dataclass into comments beside
them, and give examples as doctests or indented code. This extension of griffe turns all three into sections of
Google's style. Nothing is imported: griffe reads the source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import griffe

__all__ = ["PlainDocstrings", "with_sections"]

_ENTRY = re.compile(r"([a-zA-Z_]\w*(?:, [a-zA-Z_]\w*)*): (.*)")
_COMMENT = re.compile(r"  # (.+)$")


class PlainDocstrings(griffe.Extension):
    """Rewrite each docstring once, when griffe has read the function or class that it belongs to."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Give a function its arguments and examples."""
        if func.docstring:
            func.docstring.value = with_sections(func.docstring.value, [each.name for each in func.parameters])

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a class the arguments of its constructor, its examples and its fields."""
        if cls.docstring:
            fields = _fields(cls)
            constructor = cls.members.get("__init__")
            names = [each.name for each in constructor.parameters] if isinstance(constructor, griffe.Function) else []
            cls.docstring.value = with_sections(cls.docstring.value, [*names, *fields], fields)


def with_sections(text: str, names: Collection[str], fields: Mapping[str, str] | None = None) -> str:
    r"""Return a docstring with its arguments, its fields and its examples as sections of Google's style.

    text: the docstring, without its indentation.
    names: what a line `name: ...` may describe; a line with another word before its colon is prose.
    fields: descriptions of fields, by their names.

    >>> print(with_sections("Add two numbers.\n\na, b: the numbers.", ["a", "b"]))
    Add two numbers.
    <BLANKLINE>
    Args:
        a: the numbers.
        b: the numbers.
    """
    prose: list[str] = []
    entries: dict[str, list[str]] = {}
    examples: list[str] = []
    for paragraph in _paragraphs(text):
        if paragraph.startswith(">>> "):
            examples.append(paragraph)
        elif paragraph.startswith("    "):
            prose.append(f"```python\n{_dedented(paragraph)}\n```")
        else:
            rest = _take_entries(paragraph, names, entries)
            if rest:
                prose.append(rest)
    for name, description in (fields or {}).items():
        entries.setdefault(name, [description])
    if entries:
        prose.append(_section("Args", "\n".join(f"{name}: {' '.join(lines)}" for name, lines in entries.items())))
    if examples:
        prose.append(_section("Examples", "\n\n".join(examples)))
    return "\n\n".join(prose)


def _paragraphs(text: str) -> list[str]:
    return [paragraph.rstrip() for paragraph in re.split(r"\n\s*\n", text.strip("\n")) if paragraph.strip()]


def _take_entries(paragraph: str, names: Collection[str], entries: dict[str, list[str]]) -> str:
    """Move lines that describe an argument, with those indented below them, from a paragraph to `entries`."""
    rest: list[str] = []
    current: list[str] | None = None
    for line in paragraph.splitlines():
        match = _ENTRY.fullmatch(line)
        if match and set(match[1].split(", ")) <= set(names):
            current = [match[2]]
            entries |= dict.fromkeys(match[1].split(", "), current)
        elif current is not None and line.startswith("    "):
            current.append(line.strip())
        else:
            current = None
            rest.append(line)
    return "\n".join(rest)


def _fields(cls: griffe.Class) -> dict[str, str]:
    """Return the comments beside the fields of a dataclass."""
    if "dataclass" not in cls.labels:
        return {}
    comments = {}
    lines = cls.source.splitlines()
    for name, member in cls.members.items():
        if isinstance(member, griffe.Attribute) and not name.startswith("_") and member.lineno and cls.lineno:
            line = lines[member.lineno - cls.lineno]
            if comment := _COMMENT.search(line):
                comments[name] = comment[1]
    return comments


def _section(title: str, content: str) -> str:
    return f"{title}:\n" + "\n".join(f"    {line}" if line else "" for line in content.splitlines())


def _dedented(block: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in block.splitlines())
