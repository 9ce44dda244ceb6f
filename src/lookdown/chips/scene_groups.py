"""Groups of scenes that show the same place, found by near-duplicate chips without comparing all pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lookdown.errors import InputError

__all__ = ["find_groups", "perceptual_hash"]

Hashes = NDArray[np.uint64]
Rows = NDArray[np.intp]

_BITS = 64
_MIN_CONTRAST = 3.0  # standard deviation, in grey levels, of the 8 x 9 version
_FEWEST_BITS = 8  # that are set, or not set; with fewer, the chip is a smooth slope that any two places may share
_BLOCK_PAIRS = 1 << 20  # candidates compared at a time


def perceptual_hash(chip: NDArray[np.uint8]) -> int:
    """Return 64 bits that hardly change when a chip is compressed again, resized or made a little brighter.

    A difference hash: the chip is averaged down to 8 rows of 9 grey cells, and a bit is set where a cell is brighter
    than its left neighbour. A chip with almost no contrast (empty sea) gives 0, which `find_groups` ignores.
    """
    if chip.dtype != np.uint8 or chip.ndim not in (2, 3) or chip.size == 0:
        raise InputError(
            f"a chip must be a uint8 array of (height, width) or (height, width, bands) with at least one pixel, got "
            f"{chip.dtype} of shape {chip.shape}"
        )
    grey = chip.astype(np.float64) if chip.ndim == 2 else chip[..., :3].mean(axis=2)
    cells = _averaging(grey.shape[0], 8) @ grey @ _averaging(grey.shape[1], 9).T
    if cells.std() < _MIN_CONTRAST:
        return 0
    brighter = np.diff(cells, axis=1) > 1e-6  # more than the rounding errors of equal cells
    return int.from_bytes(np.packbits(brighter).tobytes(), "big")


def find_groups(hashes: Hashes, scenes: Sequence[str], *, distance: int = 6) -> list[str]:
    """Return the group of each chip: scenes that share a near-duplicate chip are one group, named by its first scene.

    A hash is cut into `distance + 2` bands. Hashes that differ in `distance` bits agree in at least two bands, so only
    hashes that agree in two bands are compared. Memory stays in proportion to the number of chips; time grows with the
    number of candidates. No near-duplicate is missed.

    Joining too little leaks and joining too much only wastes variety, so the default joins rather too much. Accidental
    near-duplicates grow with the square of the number of chips, and they chain: above some 10,000 chips, check the
    size of the largest group and lower the distance if it holds most of them.

    hashes: the `perceptual_hash` of each chip. Those with fewer than 8 bits set, or fewer than 8 not set (flat chips,
        plain slopes), say too little and join nothing.
    scenes: the scene of each chip.
    distance: two chips are near-duplicates if their hashes differ in at most so many bits.
    """
    hashes = np.asarray(hashes)
    if hashes.ndim != 1 or len(hashes) != len(scenes):
        raise InputError(f"one hash a chip is needed, got shape {hashes.shape} for {len(scenes)} scenes")
    if len(hashes) and hashes.dtype != np.uint64:
        raise InputError(f"hashes must be uint64, got {hashes.dtype}; use np.array(hashes, dtype=np.uint64)")
    if not 0 <= distance <= 16:
        raise InputError(f"distance must be from 0 to 16 bits of {_BITS}, got {distance}")
    if not len(hashes):
        return []
    names, scene_of = np.unique(np.asarray(scenes, dtype=np.str_), return_inverse=True)
    bits = np.bitwise_count(hashes)
    kept = np.flatnonzero((bits >= _FEWEST_BITS) & (bits <= _BITS - _FEWEST_BITS))
    kept = kept[np.argsort(hashes[kept], kind="stable")]
    equal = hashes[kept][1:] == hashes[kept][:-1]
    group_of = _join(np.arange(len(names)), scene_of[kept][1:][equal], scene_of[kept][:-1][equal])
    once = kept[np.r_[True, ~equal]] if len(kept) else kept  # the scenes of equal hashes are joined already
    for i, j in _near(hashes[once], distance):
        group_of = _join(group_of, scene_of[once[i]], scene_of[once[j]])
    first = np.unique(group_of, return_index=True)[1]  # scenes are sorted, so the first is the smallest name
    return [str(name) for name in names[first[group_of]][scene_of]]


def _near(hashes: Hashes, distance: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield rows of distinct hashes at most `distance` bits apart, band pair after band pair, in blocks."""
    edges = np.linspace(0, _BITS, distance + 3).astype(int)
    bands = [(1 << int(stop)) - (1 << int(start)) for start, stop in pairwise(edges)]
    for one, other in combinations(bands, 2):
        keys = hashes & np.uint64(one | other)
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0, True])
        later = np.repeat(starts[1:], np.diff(starts)) - np.arange(len(order)) - 1  # of the same key, further on
        for begin, end in _blocks(later):
            left = np.repeat(np.arange(begin, end), later[begin:end])
            step = np.arange(len(left)) - np.repeat(np.cumsum(later[begin:end]) - later[begin:end], later[begin:end])
            i, j = order[left], order[left + step + 1]
            near = np.bitwise_count(hashes[i] ^ hashes[j]) <= distance
            if near.any():
                yield i[near], j[near]


def _blocks(work: Rows) -> Iterator[tuple[int, int]]:
    """Cut rows into runs of about `_BLOCK_PAIRS` candidates at most."""
    total = np.cumsum(work)
    begin = 0
    while begin < len(work):
        done = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, done + _BLOCK_PAIRS, side="right")))
        yield begin, end
        begin = end


def _join(group_of: Rows, left: Rows, right: Rows) -> Rows:
    """Return the groups after joining scenes `left[k]` and `right[k]`."""
    size = len(group_of)
    edges = coo_array((np.ones(len(left)), (group_of[left], group_of[right])), shape=(size, size))
    merged = connected_components(edges, directed=False)[1]
    return np.asarray(merged[group_of], dtype=np.intp)


def _averaging(pixels: int, cells: int) -> NDArray[np.float64]:
    """Return `(cells, pixels)` weights of a mean over equal cells; a pixel on a border counts for both cells."""
    borders = np.linspace(0, pixels, cells + 1)
    pixel = np.arange(pixels)
    overlap: NDArray[np.float64] = np.minimum(borders[1:, None], pixel + 1) - np.maximum(borders[:-1, None], pixel)
    return np.maximum(overlap, 0) * (cells / pixels)
