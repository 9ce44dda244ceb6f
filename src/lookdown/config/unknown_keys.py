"""Keys that a schema does not have, answered with the ones that were probably meant."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, get_args

from lookdown.config.schema import is_array, is_table, item_types, keys_of, members
from lookdown.errors import RecipeError

__all__ = ["below", "refuse_unknown"]

_FOLDED = str.maketrans(string.ascii_uppercase + "-", string.ascii_lowercase + "_")


def below(table: str, key: object) -> str:
    """Return the path of a key of a table, the whole document being the table called nothing."""
    return f"{table}.{key}" if table else str(key)


def refuse_unknown(schema: type, values: Mapping[str, Any]) -> None:
    """Raise RecipeError at the first key, at any depth, that the schema does not have."""
    for kind, table, path in _tables(schema, values, ""):
        for key in table:
            if key not in keys_of(kind):
                raise RecipeError(f"{below(path, key)} is unknown; {_instead(schema, kind, path, str(key))}")


def _tables(kind: Any, value: Any, path: str) -> Iterator[tuple[Any, Mapping[str, Any], str]]:
    """Find the tables that are to become dataclasses; what has another shape is not ours to judge."""
    for member in members(kind):
        if is_dataclass(member) and isinstance(value, Mapping):
            yield member, value, path
            known = keys_of(member)
            parts = [(known[name].type, part, below(path, name)) for name, part in value.items() if name in known]
        elif is_table(member) and isinstance(value, Mapping):
            parts = [(get_args(member)[1], part, below(path, name)) for name, part in value.items()]
        elif is_array(member) and isinstance(value, list | tuple):
            items = zip(item_types(member, len(value)), value, strict=False)
            parts = [(item, part, f"{path}[{i}]") for i, (item, part) in enumerate(items)]
        else:
            continue
        for part in parts:
            yield from _tables(*part)


def _instead(schema: type, kind: type, path: str, key: str) -> str:
    """Suggest the nearest keys of the same table and the same key of other tables, else the nearest anywhere."""
    siblings = [(below(path, name), name) for name in keys_of(kind)]
    elsewhere = [(place, name) for place, name in _every_key(schema, "") if place not in dict(siblings)]
    meant = (
        _nearest(key, siblings, allowed=0)
        or [*_nearest(key, siblings), *_nearest(key, elsewhere, allowed=0)]
        or _nearest(key, elsewhere)
    )
    if not meant:
        return f"known here: {', '.join(keys_of(kind)) or 'nothing, leave it out'}"
    return "did you mean " + " or ".join(_placed(place, path) for place in meant) + "?"


def _placed(place: str, path: str) -> str:
    """Add where a key without a table has to stand, if it was found in one."""
    return f"{place} (above the first [table])" if path and "." not in place else place


def _every_key(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    for name, key in keys_of(schema).items():
        yield below(path, name), name
        for member in members(key.type):
            if is_dataclass(member):
                yield from _every_key(member, below(path, name))


def _nearest(key: str, places: list[tuple[str, str]], allowed: int | None = None) -> list[str]:
    """Return all places at the least distance, so that whoever slipped once finds the key that was meant."""
    limit = max(1, len(key) // 3) if allowed is None else allowed
    distances = [_slips(key.translate(_FOLDED), name.translate(_FOLDED)) for _, name in places]
    least = min(distances, default=limit + 1)
    return [place for (place, _), distance in zip(places, distances, strict=True) if distance == least <= limit]


def _slips(a: str, b: str) -> int:
    """Count letters left out, added, mistaken or swapped with a neighbour between two words (Damerau 1964)."""
    older: list[int] = []
    old = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b, start=1):
            steps = [old[j] + 1, row[j - 1] + 1, old[j - 1] + (letter != other)]
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                steps.append(older[j - 2] + 1)
            row.append(min(steps))
        older, old = old, row
    return old[-1]
