"""How many lists of an IVF index to probe, measured by the exact neighbours of trial queries."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.engines.engine import Lists, Vectors
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics.pairwise import half_squared_distances

__all__ = ["ProbeCount", "Ranks", "Trials", "list_ranks"]

Ranks = NDArray[np.intp]  # 0 for the list whose centroid is nearest to the query

_TRIAL_QUERIES = 384  # most miss no neighbour and a few miss many, so a mean needs this many
_WITNESS_ROWS, _LEAST_SHARE = 100_000, 0.1  # rows, and the least share of all, that trials are compared with
_NEIGHBOURS = (50, 100, 200, 500, 1000)  # for which probes are measured
_RECALL = 0.994  # 0.99 is promised; other queries may fare slightly worse than the trials


@dataclass(frozen=True, slots=True)
class Trials:
    """Rows that serve as queries, and the rows that they are compared with.

    Of a large gallery only a random share is compared. It holds the same share of the neighbours of a query, so recall
    is the same, and many queries cost as little as a few would with all rows.
    """

    rows: Rows  # rising
    witnesses: NDArray[np.bool_]
    share: float

    @classmethod
    def drawn(cls, rows: int, seed: int) -> Self:
        """Draw trials from a gallery with this many rows."""
        rng = np.random.default_rng(seed)
        share = min(max(_WITNESS_ROWS / max(rows, 1), _LEAST_SHARE), 1.0)
        chosen = np.sort(rng.choice(rows, min(_TRIAL_QUERIES, rows), replace=False))
        return cls(chosen, rng.random(rows) < share, share)

    @property
    def wanted(self) -> int:
        """How many nearest witnesses to find; one of them may be the query itself."""
        return min(ceil(_NEIGHBOURS[-1] * self.share) + 1, int(np.count_nonzero(self.witnesses)))

    def others(self, nearest: Rows) -> Rows:
        """Return (trials, wanted) rows, nearest first, without the trials themselves."""
        count = max(self.wanted - 1, 0)
        pairs = zip(self.rows, nearest, strict=True)
        return np.array([rows[rows != own][:count] for own, rows in pairs], np.intp).reshape(len(self.rows), count)


def list_ranks(queries: Vectors, centroids: Vectors, lists: Lists) -> Ranks:
    """Return the rank of each of (queries, k) lists: how many others have a centroid nearer to the query."""
    order = np.argsort(half_squared_distances(queries, centroids), axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(centroids))[None], axis=1)
    return np.take_along_axis(ranks, lists.astype(np.intp), axis=1)


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """Numbers of neighbours and, for each, the least number of lists that hold almost all of them."""

    lists: int
    steps: tuple[tuple[int, int], ...]  # (neighbours, probes), rising
    recall: float  # of the first step, measured

    @classmethod
    def measured(cls, ranks: Ranks, lists: int, share: float) -> Self:
        """Count probes by the ranks of the lists that hold the (trials, k) neighbours.

        A row is found if its list is probed, so the recall with p probes is the share of ranks below p.

        share: of the gallery that the trials were compared with.
        """
        measured = ranks.shape[1]
        if not ranks.size:
            return cls(lists, ((_NEIGHBOURS[0], lists),), 1.0)
        parts = [(k, ceil(k * share)) for k in _NEIGHBOURS if ceil(k * share) < measured] + [
            (int(measured / share), measured)
        ]
        steps = [(k, _least_probes(ranks[:, :part])) for k, part in parts]
        return cls(lists, tuple(steps), float(np.mean(ranks[:, : parts[0][1]] < steps[0][1])))

    def probes(self, k: int) -> int:
        """Return how many lists to probe for k neighbours; in proportion beyond those that were measured."""
        for neighbours, probes in self.steps:
            if k <= neighbours:
                return probes
        return min(ceil(probes * k / neighbours), self.lists)


def _least_probes(ranks: Ranks) -> int:
    return int(np.sort(ranks, axis=None)[ceil(_RECALL * ranks.size) - 1]) + 1
