"""Names on a terminal: one line, no codes, cut to the columns they take."""

from __future__ import annotations

import unicodedata

import pytest
from tests.gallery.results.found import NAUGHTY

from lookdown.gallery.results.plain_text import cells, cut, one_line, valid


@pytest.mark.parametrize("name", NAUGHTY)
def test_one_line_has_no_code_in_it_and_leaves_letters_alone(name: str) -> None:
    line = one_line(name)
    assert not [sign for sign in line if unicodedata.category(sign) in ("Cc", "Zl", "Zp", "Cs")]
    assert "\u202e" not in line
    assert [sign for sign in name if sign.isalnum()] == [sign for sign in line if sign.isalnum()]


def test_signs_that_join_emoji_stay() -> None:
    assert one_line("👩\u200d🚀") == "👩\u200d🚀"


@pytest.mark.parametrize(
    ("text", "width"), [("ship", 4), ("船", 2), ("🚢", 2), ("e\u0301", 1), ("سفينة", 5), ("\uff21", 2), ("", 0)]
)
def test_cells_are_columns_of_a_terminal(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize("name", NAUGHTY)
@pytest.mark.parametrize("width", [1, 2, 3, 10, 11, 40])
def test_a_cut_name_fits_and_keeps_both_ends(name: str, width: int) -> None:
    line = one_line(name)
    short = cut(line, width)
    assert cells(short) <= width
    if cells(line) <= width:
        assert short == line
    else:
        head, tail = short.split("…")
        assert line.startswith(head)
        assert line.endswith(tail)
        assert cells(short) >= width - 2  # a wide sign may leave a column on either side


def test_an_accent_does_not_outlive_its_letter() -> None:
    assert cut("abcdefghie\u0301j", 5) == "ab…e\u0301j"
    assert cut("abcdefghie\u0301", 4) == "ab…e\u0301"
    assert cut("abcdefgh船\u0301", 3) == "a…"


def test_bytes_that_were_no_text_become_a_mark() -> None:
    assert valid("a\udcffb 🚢") == "a\ufffdb 🚢"
    assert one_line("a\udcff") == "a\ufffd"
