"""How many lists to look through, by measurement: the exact answers to trial queries say which lists hold them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.engines.engine import Lists, Vectors
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics.pairwise import half_squared_distances

__all__ = ["Probing", "Ranks", "Trials", "list_ranks"]

Ranks = NDArray[np.intp]  # 0 for the list whose centroid is nearest to the query

_TRIALS = 384  # few queries miss many neighbours and most miss none, so a mean over few of them says little
_WITNESSES, _FEWEST = 100_000, 0.1  # rows, and the least share of all, that trials are compared with
_AMOUNTS = (50, 100, 200, 500, 1000)  # of neighbours, for which probes are measured
_RECALL = 0.994  # 0.99 is promised: probes that do for the trials may not quite do for other queries


@dataclass(frozen=True, slots=True)
class Trials:
    """Rows as queries, and the rows that answer them.

    Of a large gallery only a random share is compared. What it has of the neighbours of a query is a random share of
    them too, so recall is as it would be, and many queries cost as little as few would with all rows.
    """

    rows: Rows  # rising
    witnesses: NDArray[np.bool_]
    share: float

    @classmethod
    def drawn(cls, rows: int, seed: int) -> Self:
        """Draw from a gallery of so many rows."""
        rng = np.random.default_rng(seed)
        share = min(max(_WITNESSES / max(rows, 1), _FEWEST), 1.0)
        chosen = np.sort(rng.choice(rows, min(_TRIALS, rows), replace=False))
        return cls(chosen, rng.random(rows) < share, share)

    @property
    def wanted(self) -> int:
        """Nearest witnesses to look for; one of them may be the query itself."""
        return min(ceil(_AMOUNTS[-1] * self.share) + 1, int(np.count_nonzero(self.witnesses)))

    def others(self, answers: Rows) -> Rows:
        """Return answers, (trials, wanted) rows nearest first, without the trials themselves."""
        count = max(self.wanted - 1, 0)
        pairs = zip(self.rows, answers, strict=True)
        return np.array([rows[rows != own][:count] for own, rows in pairs], np.intp).reshape(len(self.rows), count)


def list_ranks(queries: Vectors, centroids: Vectors, lists: Lists) -> Ranks:
    """Return when a search comes to each of (queries, k) lists: how many others have a centroid nearer the query."""
    order = np.argsort(half_squared_distances(queries, centroids), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(len(centroids))[None], axis=1)
    return np.take_along_axis(places, lists.astype(np.intp), axis=1)


@dataclass(frozen=True, slots=True)
class Probing:
    """Numbers of neighbours and, for each, the least number of lists that holds almost all of them."""

    lists: int
    steps: tuple[tuple[int, int], ...]  # (neighbours, probes), rising
    recall: float  # of the first step, measured

    @classmethod
    def measured(cls, ranks: Ranks, lists: int, share: float) -> Self:
        """Read the numbers off the ranks of the lists that hold (trials, k) answers, a share of the nearest rows.

        A row is found if its list is looked through, so the recall with p probes is the share of ranks below p.
        """
        known = ranks.shape[1]
        if not ranks.size:
            return cls(lists, ((_AMOUNTS[0], lists),), 1.0)
        parts = [(k, ceil(k * share)) for k in _AMOUNTS if ceil(k * share) < known] + [(int(known / share), known)]
        steps = [(k, _least_probes(ranks[:, :part])) for k, part in parts]
        return cls(lists, tuple(steps), float(np.mean(ranks[:, : parts[0][1]] < steps[0][1])))

    def probes(self, k: int) -> int:
        """Return how many lists to look through for k neighbours; in proportion beyond those that were measured."""
        for amount, probes in self.steps:
            if k <= amount:
                return probes
        return min(ceil(probes * k / amount), self.lists)


def _least_probes(ranks: Ranks) -> int:
    return int(np.sort(ranks, axis=None)[ceil(_RECALL * ranks.size) - 1]) + 1
