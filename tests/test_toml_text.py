"""TOML as text: files that cannot be read, values named in a sentence, tables written."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every_type import FREE, TEXT

from lookdown.errors import RecipeError
from lookdown.toml_text import describe, misfit, read_file, read_value, write_table


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = 1\nb = two\n", ", line 2: Invalid value; correct it there"),
        (b"a = 1\n\nb 3\n", ", line 3: Expected '='"),
        (b"a = 1\nb = [1, 2\n\n\n", ", line 2: Unclosed array"),
        (b"a = 1\na = 2\n", ", line 2: Cannot overwrite a value"),
        (b"a = 1\nb = '\xff'\n", ", line 2: not UTF-8; save the file in that encoding"),
        (b"a = " + b"1" * 9999, " cannot be read as TOML (Exceeds the limit"),
        (b"a = " + b"[" * 99999, " cannot be read as TOML ("),
    ],
)
def test_a_malformed_file_is_refused_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "some.toml"
    file.write_bytes(content)
    with pytest.raises(RecipeError) as caught:
        read_file(file)
    assert str(caught.value).startswith(f"{file}{message}")


def test_a_file_that_is_not_there_or_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"none\.toml cannot be read \(No such file.+\); name a recipe"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(RecipeError, match=r"cannot be read \(.+\); name a recipe"):
        read_file(tmp_path)


def test_line_ends_and_the_mark_that_some_editors_put_first_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_bytes("\ufeffa = 'é'\r\nb = 2\r\n".encode())
    assert read_file(tmp_path / "some.toml") == {"a": "é", "b": 2}


@given(st.dictionaries(TEXT, FREE, max_size=4))
def test_a_table_is_written_so_that_it_is_read_as_it_was(values: dict[str, Any]) -> None:
    def with_lists(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: with_lists(part) for name, part in value.items()}
        return [with_lists(part) for part in value] if isinstance(value, tuple) else value

    assert repr(sorted(tomllib.loads(write_table(values)))) == repr(sorted(values))
    assert tomllib.loads(write_table(values)) == with_lists(values)


def test_keys_stand_before_tables_and_a_table_of_tables_needs_no_line() -> None:
    values = {"table": {"inner": {"b": [{"c": 1.5}]}, "none": {}}, "key": 'a "word"\n', "odd key": True}
    assert write_table(values) == (
        'key = "a \\"word\\"\\n"\n"odd key" = true\n\n[table.inner]\nb = [{c = 1.5}]\n\n[table.none]\n'
    )
    assert write_table({}) == ""


@pytest.mark.parametrize("text", ["", "1\nb = 2", "1, 2", "yes", "1\n[b]", "[" * 99999])
def test_what_is_not_one_value_is_text(text: str) -> None:
    assert read_value(text) == text
    assert read_value("[1, true]") == [1, True]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"), (3, "3"), (1e-7, "1e-07"), ("a\tb", '"a\\tb"'), ({"a": [1, -math.inf]}, "{a = [1, -inf]}"),
        ("x" * 99, f'"{"x" * 59}...'),
    ],
)  # fmt: skip
def test_a_value_in_a_sentence(value: object, words: str) -> None:
    assert describe(value) == words


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, None), (2**63 - 1, None), (math.nan, None), ("é", None), (2**63, "a whole number of more than 64 bits"),
        ("\udcff", "text that is not Unicode"), (None, "a value of type NoneType"), (b"x", "a value of type bytes"),
    ],
)  # fmt: skip
def test_what_toml_does_not_hold(value: object, reason: str | None) -> None:
    assert misfit(value) == reason
