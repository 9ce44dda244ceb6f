"""The role of each group of chips, chosen so that every class comes near its wanted share in every role."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Counts", "balance", "held_by_role"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_TRIES = 20  # orders of the groups; the best is taken
_TRIED_GROUPS = 20_000  # over all tries: one try is enough for many small groups
_MOVES = 1000  # of a group to another role, after the greedy start
_MOVED_COUNTS = 100_000_000  # entries of groups x classes examined for moves: greedy is good with many groups


def balance(counts: Counts, wanted: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the role of each group, such that the objects held (role, class) come near those wanted.

    Groups are taken roughly from the largest to the smallest, each to the role that reduces the deviation most; then
    single groups move as long as that helps. The deviation is the sum of (held - wanted)^2 / wanted over the roles that
    a class has a share in. Sizes are blurred at random; otherwise every seed would give nearly the same split.

    counts: (groups, classes) objects.
    wanted: (roles, classes) objects.
    """
    size = counts.sum(axis=1)
    best, least = np.zeros(len(counts), dtype=np.intp), np.inf
    for _ in range(min(_TRIES, 1 + _TRIED_GROUPS // len(counts))):
        role_of = np.zeros(len(counts), dtype=np.intp)
        held = np.zeros_like(wanted)
        for group in np.argsort(-size * rng.uniform(0.5, 1.5, len(size)), kind="stable"):
            gain = _deviation(held + counts[group], wanted) - _deviation(held, wanted)
            role_of[group] = gain.argmin()
            held[role_of[group]] += counts[group]
        _improve(role_of, counts, wanted)
        cost = float(_cost(held_by_role(counts, role_of), wanted).sum())
        if cost < least:
            best, least = role_of, cost
        if cost < wanted.shape[1]:  # about one object off in each class: no order does much better
            break
    return best


def _improve(role_of: NDArray[np.intp], counts: Counts, wanted: Array) -> None:
    """Move one group at a time to another role, the best move first, until none helps."""
    rows = np.arange(len(counts))
    for _ in range(min(_MOVES, 1 + _MOVED_COUNTS // counts.size)):
        held = held_by_role(counts, role_of)
        now = _cost(held, wanted)
        enter = np.stack([_cost(held[r] + counts, wanted[r]) - now[r] for r in range(3)], axis=1)
        leave = _cost(held[role_of] - counts, wanted[role_of]) - now[role_of]
        change = enter + leave[:, None]
        change[rows, role_of] = 0
        group, role = np.unravel_index(change.argmin(), change.shape)
        if change[group, role] > -1e-6:
            return
        role_of[group] = role


def _deviation(held: Array | Counts, wanted: Array) -> Array:
    """Return the sum over classes of (held - wanted)^2 / wanted, where anything is wanted."""
    return np.asarray(((held - wanted) ** 2 / np.where(wanted > 0, wanted, np.inf)).sum(axis=-1))


def _cost(held: Array | Counts, wanted: Array) -> Array:
    """Return the deviation; a role without any object of a class that it should have outweighs all else."""
    lacking = ((held == 0) & (wanted > 0)).sum(axis=-1)
    return np.asarray(_deviation(held, wanted) + 1e9 * lacking)


def held_by_role(counts: Counts, role_of: NDArray[np.intp]) -> Counts:
    """Return how many objects of each class each role holds, (3, classes)."""
    return np.stack([counts[role_of == role].sum(axis=0) for role in range(3)])
