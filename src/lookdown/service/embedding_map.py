"""A map of the gallery: the plane of the first two principal components of a sample of its embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.store.snapshot import Rows, Snapshot

__all__ = ["Plane", "points"]

Array = NDArray[np.float64]

_SAMPLE_CHIPS = 3_000


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane through the unit sphere, fixed for one version of the table."""

    version: int
    mean: Array  # (d,)
    axes: Array  # (d, 2)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Plane:
        """Fit the plane to a sample of the chips."""
        x = _unit(snapshot.embeddings(sample(len(snapshot), _SAMPLE_CHIPS)))
        mean = x.mean(axis=0) if len(x) else np.zeros(snapshot.dimension)
        _, vectors = np.linalg.eigh((x - mean).T @ (x - mean))
        axes = vectors[:, ::-1][:, :2]
        axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))  # embeddings may have one dimension
        largest = np.abs(axes).argmax(axis=0)
        signs = np.where(axes[largest, [0, 1]] < 0, -1, 1)  # the sign of an eigenvector is arbitrary
        return cls(snapshot.version, mean, axes * signs)

    def project(self, embeddings: NDArray[np.float32]) -> Array:
        """Return the positions of embeddings in the plane, (n, 2)."""
        return np.asarray((_unit(embeddings) - self.mean) @ self.axes)


def points(snapshot: Snapshot, plane: Plane, rows: Rows) -> list[dict[str, Any]]:
    """Return chips with their positions in the plane."""
    ids = snapshot.ids.take(rows).to_pylist()
    positions = plane.project(snapshot.embeddings(rows))
    return [
        {"id": name, "x": float(x), "y": float(y), "label": snapshot.columns.labels[int(row)]}
        for name, (x, y), row in zip(ids, positions, rows, strict=True)
    ]


def sample(rows: int, wanted: int) -> Rows:
    """Return rows drawn at random with a fixed seed, in ascending order."""
    if rows <= wanted:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, wanted, replace=False))


def _unit(embeddings: NDArray[np.float32]) -> Array:
    x = embeddings.astype(np.float64)
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
