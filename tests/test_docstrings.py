"""The API reference understands how our docstrings describe arguments, fields and examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

griffe = pytest.importorskip("griffe", reason="run: pip install --constraint constraints.txt '.[docs]'")

from docs_build.docstrings import with_sections  # noqa: E402

MODULE = '''
from dataclasses import dataclass

@dataclass
class Box:
    """A box, with north above.

    west: in degrees.
    """

    west: float  # not read: the docstring has it
    east: float  # in degrees
    count: int

def add(a, b=1, *, note=""):
    """Add two numbers: nothing else.

    a, b: the numbers,
        both of them.
    note: not used.

    Rule: this line is prose.

        add(1, 2)
    """
'''


def described(thing: Any) -> dict[str, str]:
    """The arguments that griffe sees in the docstring of a function or class."""
    sections = [section for section in thing.docstring.parse("google") if section.kind == "parameters"]
    return {each.name: each.description for section in sections for each in section.value}


def test_arguments_become_a_section_and_prose_stays() -> None:
    text = "Add: it does.\n\na, b: the numbers,\n    both.\nother: prose.\n\nMore: prose."
    assert with_sections(text, ["a", "b"]) == (
        "Add: it does.\n\nother: prose.\n\nMore: prose.\n\nArgs:\n    a: the numbers, both.\n    b: the numbers, both."
    )


def test_a_docstring_without_arguments_stays_as_it_is() -> None:
    assert with_sections("One line.\n\nAnother.", ["x"]) == "One line.\n\nAnother."


def test_examples_become_code() -> None:
    text = "Add.\n\n    add(1, 2)\n    add(3, 4)\n\n>>> add(1, 2)\n3"
    assert with_sections(text, []) == (
        "Add.\n\n```python\nadd(1, 2)\nadd(3, 4)\n```\n\nExamples:\n    >>> add(1, 2)\n    3"
    )


def test_fields_of_a_dataclass_are_described_by_their_comments(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(MODULE)
    extensions = griffe.load_extensions("docs_build.docstrings")
    module = griffe.load("boxes", search_paths=[tmp_path], extensions=extensions)
    assert described(module["Box"]) == {"west": "in degrees.", "east": "in degrees"}
    both = "the numbers, both of them."
    assert described(module["add"]) == {"a": both, "b": both, "note": "not used."}
    assert "```python\nadd(1, 2)\n```" in module["add"].docstring.value
