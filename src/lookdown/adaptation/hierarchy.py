"""Ward's tree of unlabelled embeddings, cut at several numbers of clusters, as nobody knows how many kinds there are.

The coarsest cut is where clusters stand apart best, and finer ones count as much: a pair that stays together through
many cuts is taken for the same more often, and what one cut gets wrong the others outvote. Cuts of a tree are nested,
so moments of the finest clusters, taken in one pass, add up to those of every other cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.clustering import Clusters, mapped
from lookdown.adaptation.shards import Rows
from lookdown.adaptation.silhouettes import silhouette_of
from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, unit

__all__ = ["LEVELS", "TREE_ROWS", "Hierarchy", "find_hierarchy"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

LEVELS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
TREE_ROWS = 4096  # that a tree is made of: it takes the distances of all pairs of them
_ROWS = 1024  # that the coarsest cut is chosen on
_CHIPS_A_CLUSTER = 10


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A tree of some rows, cut; a row that is not among them goes where the nearest one of them is."""

    rows: Clusters  # each row of the tree is a centre of its own
    finest: Labels  # (rows,) its cluster at the finest cut
    cuts: Labels  # (cuts, finest clusters) the cluster of each of these at every cut, coarse first

    @property
    def normalize(self) -> bool:
        """Whether rows are put on the unit sphere."""
        return self.rows.normalize

    @property
    def count(self) -> int:
        """Clusters at the coarsest cut, which is the likeliest."""
        return int(self.cuts[0].max()) + 1

    @property
    def told(self) -> str:
        """The numbers of clusters, for a reader."""
        finest = self.cuts.shape[1]
        return f"{self.count} clusters" if finest == self.count else f"{self.count} to {finest} clusters"

    def assign(self, X: Embeddings) -> tuple[Labels, Array]:
        """Return the finest cluster of each row, and the squared distance to the nearest row of the tree."""
        nearest, distances = self.rows.assign(X)
        return self.finest[nearest], distances

    def mapped(self, X: Embeddings) -> Embeddings:
        """Return rows as they were clustered."""
        return self.rows.mapped(X)


def find_hierarchy(
    X: Rows,
    clusters: int | Literal["auto"],
    levels: Sequence[int] = LEVELS,
    *,
    normalize: bool,
    centred: bool = False,
    map: Array | None = None,
    seed: int = 0,
) -> Hierarchy:
    """Merge rows, or a sample of them, by Ward's rule, and cut the tree into `clusters` and at all finer levels.

    clusters: `auto` is the level at which they stand apart best, by their silhouette.
    centred: on the unit sphere, compare directions from the mean of the rows: what all share hides what tells them
        apart.
    """
    from scipy.cluster.hierarchy import linkage  # heavy, and who searches a gallery never clusters

    some = X[:] if len(X) <= TREE_ROWS else X[_sample(len(X), TREE_ROWS, seed)]
    centre = np.asarray(unit(some).mean(axis=0, dtype=np.float64)) if centred and normalize else None
    points = mapped(some, normalize, map, centre)
    distinct = np.unique(points, axis=0, return_index=True)[1]  # copies would pass for the tightest of clusters
    tree = linkage(points, "ward")
    usable = [level for level in sorted(set(levels)) if level <= len(distinct) // _CHIPS_A_CLUSTER]
    if clusters == "auto":
        if not usable:
            least = _CHIPS_A_CLUSTER * min(levels)
            raise InputError(f"{len(distinct)} images are too few for {min(levels)} clusters or more; {least} would do")
        cuts = _cut(tree, len(points), usable)
        looked_at = distinct[_sample(len(distinct), min(_ROWS, len(distinct)), seed)]
        best = int(np.argmax([silhouette_of(points[looked_at], cut[looked_at]) for cut in cuts]))
        cuts = cuts[best:]
    else:
        cuts = _cut(tree, len(points), [clusters, *(level for level in usable if level > clusters)])
    finest = np.unique(cuts[-1], return_inverse=True)[1].astype(np.int64)
    first = np.unique(finest, return_index=True)[1]  # a row of each finest cluster
    coarser = [np.unique(cut[first], return_inverse=True)[1].astype(np.int64) for cut in cuts]
    return Hierarchy(Clusters(points, normalize, map, centre), finest, np.stack(coarser))


def _cut(tree: Array, rows: int, levels: Sequence[int]) -> list[Labels]:
    """Return the node of the tree that each row is under when so many clusters are left, for rising levels."""
    owner, found = np.arange(rows), {}
    for step, (one, other) in enumerate(tree[:, :2].astype(np.int64)):
        owner[(owner == one) | (owner == other)] = rows + step
        if rows - step - 1 in levels:
            found[rows - step - 1] = owner.copy()
    return [found[level] for level in levels]


def _sample(size: int, rows: int, seed: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(seed).choice(size, rows, replace=False))
