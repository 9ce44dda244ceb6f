"""Schemas that TOML can hold, and those that it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Optional, Union

import pytest
from tests.config.every_type import Stage, Turn

from lookdown.config import AnyFloat, build, to_toml
from lookdown.config.schema import Key, expected, keys_of


@dataclass(frozen=True)
class Counted:
    counted: ClassVar[int] = 3
    given: int = 1
    derived: int = field(init=False, default=7)


def test_only_fields_that_the_constructor_takes_are_keys() -> None:
    assert keys_of(Counted) == {"given": Key(int, optional=False, required=False)}
    assert to_toml(Counted(given=2)) == "given = 2\n"


@pytest.mark.parametrize("kind", [int | None, Optional[int], Union[None, int]])  # noqa: UP007, UP045
def test_none_is_a_key_left_out(kind: Any) -> None:
    for schema in (make_dataclass("A", [("x", kind)]), make_dataclass("B", [("x", kind, None)])):
        assert keys_of(schema) == {"x": Key(int, optional=True, required=False)}
        assert vars(build(schema, {})) == vars(build(schema, {"x": None})) == {"x": None}


def test_none_beside_another_default_is_a_mistake_in_the_schema() -> None:
    schema = make_dataclass("Odd", [("x", int | None, 5)])
    with pytest.raises(TypeError, match=r"Odd\.x may be None, so its default must be None"):
        build(schema, {})


@pytest.mark.parametrize(
    "kind",
    [
        bytes, list[int], set[int], tuple, tuple[int | None, ...], dict, Mapping[int, str], Mapping[str, bytes],
        str | Path, Turn | Stage, Turn | Mapping[str, int], Literal["a", None], Literal[b"x"], complex | float,
        tuple[list[int], ...],
    ],
)  # fmt: skip
def test_a_type_that_cannot_be_written_and_read_again_is_refused_before_any_value(kind: Any) -> None:
    with pytest.raises(TypeError, match="a recipe cannot hold"):
        build(make_dataclass("Outer", [("inner", make_dataclass("Inner", [("x", kind, None)]), None)]), {})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (AnyFloat, "a number, inf or nan"),
        (float | Literal["paper"], 'a number or "paper"'),
        (Literal[1, True, "x"], '1 or true or "x"'),
        (tuple[float, float], "an array of 2 (each a number)"),
        (tuple[str, int, str], "an array of 3 (text, a whole number, text)"),
        (tuple[Path, ...], "an array (each a path)"),
        (Mapping[str, Any], "a table"),
        (dict[str, bool], "a table (each true or false)"),
        (Stage, "a table"),
    ],
)
def test_what_a_type_takes_in_words(kind: Any, words: str) -> None:
    assert expected(kind) == words
