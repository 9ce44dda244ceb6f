"""Names as others can take them: what a user called a chip may hold anything, and reaches terminals and files."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

__all__ = ["cells", "cut", "one_line", "valid"]

_SURROGATES = re.compile("[\ud800-\udfff]")
_JOINERS = "\u200c\u200d"  # they shape letters and emoji, and can do no harm
_UNKNOWN = "\ufffd"


def valid(text: str) -> str:
    """Return text that UTF-8 can hold: bytes of a file name that were none are replaced by a mark."""
    return _SURROGATES.sub(_UNKNOWN, text)


def one_line(text: str) -> str:
    """Return text on one line, without codes that would move a cursor, colour a terminal or turn the direction."""
    plain = text.isascii() and text.isprintable()  # nearly always
    return text if plain else "".join(map(_shown, text))


def cells(text: str) -> int:
    """Return how many columns of a terminal a line takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, width: int) -> str:
    """Return text in at most `width` columns: what stands in the middle goes, since names differ at their ends."""
    if cells(text) <= width:
        return text
    tail = _fitting(text[::-1], (width - 1) // 2)[::-1]
    while tail and not _cells(tail[0]):  # an accent whose letter is gone
        tail = tail[1:]
    return f"{_fitting(text, width // 2)}…{tail}"


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _JOINERS
    return _UNKNOWN if hidden else character


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most `width` columns."""
    return text[: bisect_right(list(accumulate(map(_cells, text))), width)]
