"""Keep back whole places of the training set, to validate on and to calibrate by: never a single chip of a place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError

__all__ = ["hold_out"]


def hold_out(labels: Sequence[str], groups: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    """Return which chips are kept back: about `share` of them, in whole groups.

    No class is left with fewer than two chips to train on. Groups are taken in a seeded order, so the same chips are
    kept back whatever else changes. What is kept back has pairs of the same and of different classes.
    """
    if len(set(labels)) < 2:
        raise InputError(
            f"all {len(labels)} training chips are of one class, {labels[0]}; a metric needs two or more to tell apart"
        )
    members: dict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        members[group].append(row)
    left = Counter(labels)
    kept = np.zeros(len(labels), np.bool_)
    names = sorted(members)
    for number in np.random.default_rng([seed, len(names)]).permutation(len(names)).tolist():
        rows = members[names[number]]
        taken = Counter(labels[row] for row in rows)
        if kept.sum() + len(rows) > share * len(labels) or any(left[name] - taken[name] < 2 for name in taken):
            continue
        left.subtract(taken)
        kept[rows] = True
    found = Counter(labels[row] for row in np.flatnonzero(kept).tolist())
    if len(found) < 2 or max(found.values()) < 2:
        raise InputError(
            f"of {len(names)} training places, {100 * share:g} % cannot be kept back with two classes in them, one of "
            "which has two chips; prepare data from more places, or raise data.held_out"
        )
    return kept
