"""The sentence for a name that is not known: the nearest one that is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "nearest"]

_LISTED = 40  # names that a sentence may list


def did_you_mean(name: object, known: Iterable[str], *, otherwise: str | None = None) -> str:
    """Return "did you mean NAME?" with the nearest known name.

    otherwise: the sentence where no name is near; without it the known names are listed.

    >>> did_you_mean("tripplet", ["identity", "triplet"])
    'did you mean triplet?'
    >>> did_you_mean("x", ["identity", "triplet"])
    'known are identity, triplet'
    """
    names = list(known)
    if close := nearest(name, names):
        return f"did you mean {close}?"
    if otherwise is not None:
        return otherwise
    rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"known are {', '.join(names[:_LISTED])}{rest}"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, whatever its case and its dashes, or None."""
    folded = {_folded(candidate): candidate for candidate in known}
    close = get_close_matches(_folded(str(name)), folded, n=1)
    return folded[close[0]] if close else None


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
