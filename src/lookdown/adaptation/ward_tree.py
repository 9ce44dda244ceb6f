"""Ward's tree of unlabelled embeddings, cut at several numbers of clusters, as the number of kinds is not known.

The coarsest cut is where clusters stand apart best, and finer ones count as much: a pair that stays together through
many cuts counts as the same more often, and what one cut gets wrong the others outvote. The cuts of a tree are nested,
so the moments of the finest clusters, taken in one pass, add up to those of every other cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.k_means import Clusters, mapped, mean_silhouette, sample
from lookdown.adaptation.shards import Rows
from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, unit

__all__ = ["LEVELS", "TREE_ROWS", "WardTree", "find_tree"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

LEVELS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
TREE_ROWS = 4096  # that a tree is made of: it needs the distances of all pairs of them
_CUT_ROWS = 1024  # that the coarsest cut is chosen on
_CHIPS_PER_CLUSTER = 10


@dataclass(frozen=True, slots=True)
class WardTree:
    """A tree of some rows, cut at several levels; any other row goes to the cluster of the nearest of them."""

    rows: Clusters  # each row of the tree is a centre
    finest: Labels  # (rows,): the cluster of each at the finest cut
    cuts: Labels  # (cuts, finest clusters): the cluster of each of these at every cut, coarse first

    @property
    def normalize(self) -> bool:
        """Whether rows are normalized."""
        return self.rows.normalize

    @property
    def count(self) -> int:
        """The number of clusters at the coarsest cut, which is the likeliest."""
        return int(self.cuts[0].max()) + 1

    @property
    def description(self) -> str:
        """The numbers of clusters, in words."""
        finest = self.cuts.shape[1]
        return f"{self.count} clusters" if finest == self.count else f"{self.count} to {finest} clusters"

    def assign(self, X: Embeddings) -> tuple[Labels, Array]:
        """Return the finest cluster of each row, and the squared distance to the nearest row of the tree."""
        nearest, distances = self.rows.assign(X)
        return self.finest[nearest], distances

    def mapped(self, X: Embeddings) -> Embeddings:
        """Return rows in the space that the tree is in."""
        return self.rows.mapped(X)


def find_tree(
    X: Rows,
    clusters: int | Literal["auto"],
    levels: Sequence[int] = LEVELS,
    *,
    normalize: bool,
    centred: bool = False,
    map: Array | None = None,
    seed: int = 0,
) -> WardTree:
    """Merge rows, or a sample of them, by Ward's rule, and cut the tree into `clusters` and at all finer levels.

    clusters: `auto` is the level at which they stand apart best, by their silhouette.
    centred: where rows are normalized, compare their directions from the mean, without what all of them share.
    """
    from scipy.cluster.hierarchy import linkage  # heavy, and a search never clusters

    rows = X[:] if len(X) <= TREE_ROWS else X[sample(len(X), TREE_ROWS, seed)]
    centre = np.asarray(unit(rows).mean(axis=0, dtype=np.float64)) if centred and normalize else None
    points = mapped(rows, normalize, map, centre)
    distinct = np.unique(points, axis=0, return_index=True)[1]  # copies would pass for the tightest of clusters
    tree = linkage(points, "ward")
    usable = [level for level in sorted(set(levels)) if level <= len(distinct) // _CHIPS_PER_CLUSTER]
    if clusters == "auto":
        if not usable:
            least = _CHIPS_PER_CLUSTER * min(levels)
            raise InputError(f"{len(distinct)} images are too few for {min(levels)} clusters; give {least} or more")
        cuts = _cut(tree, len(points), usable)
        judged = distinct[sample(len(distinct), min(_CUT_ROWS, len(distinct)), seed)]
        best = int(np.argmax([mean_silhouette(points[judged], cut[judged]) for cut in cuts]))
        cuts = cuts[best:]
    else:
        cuts = _cut(tree, len(points), [clusters, *(level for level in usable if level > clusters)])
    finest = np.unique(cuts[-1], return_inverse=True)[1].astype(np.int64)
    first = np.unique(finest, return_index=True)[1]  # a row of each finest cluster
    coarser = [np.unique(cut[first], return_inverse=True)[1].astype(np.int64) for cut in cuts]
    return WardTree(Clusters(points, normalize, map, centre), finest, np.stack(coarser))


def _cut(tree: Array, rows: int, levels: Sequence[int]) -> list[Labels]:
    """Return for each level, in rising order, the node of the tree that each row is under."""
    owner, labels = np.arange(rows), {}
    for step, (one, other) in enumerate(tree[:, :2].astype(np.int64)):
        owner[(owner == one) | (owner == other)] = rows + step
        if rows - step - 1 in levels:
            labels[rows - step - 1] = owner.copy()
    return [labels[level] for level in levels]
