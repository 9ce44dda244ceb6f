"""Galleries of made-up vectors for the tests: kinds that differ more than chips of one kind do, with nasty names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown import GaussianLikelihoodRatio
from lookdown.gallery import Gallery
from lookdown.gallery.search.engines.engine import EngineChoice

Embeddings = NDArray[np.float32]

LABELS = ("tanker", "it's", 'a "ferry"', "' OR 1=1 --", "x = y", "100 %", "null", "", "船", "a\nb")
SCENES = ("harbour.tif", "coast; DROP TABLE records", "bay\\", "sea")
SENSORS = ("S2A", "S2'B", None)


def kinds(n: int, d: int = 8, classes: int = len(LABELS), seed: int = 0) -> tuple[Embeddings, NDArray[np.int64]]:
    """Return vectors and their kinds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, d))
    y = np.arange(n) % classes
    return (centres[y] + 0.3 * rng.normal(size=(n, d))).astype(np.float32), y


def rows_of(y: NDArray[np.int64], seed: int = 0) -> list[dict[str, Any]]:
    """Return chips with labels, scenes, times, sensors and places, some of them missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, kind in enumerate(y):
        lon, lat = rng.uniform(-10, 10), rng.uniform(40, 60)
        corners = ((lon, lat), (lon + 0.1, lat), (lon + 0.1, lat + 0.1), (lon, lat + 0.1), (lon, lat))
        ring = ", ".join(f"{x:.4f} {y:.4f}" for x, y in corners)
        rows.append({
            "id": f"chip '{place}' -- {kind}",
            "source": f"/archive/{place}.jpg",
            "scene": SCENES[place % len(SCENES)],
            "scene_group": f"place {place % 25}",
            "label": None if place % 11 == 3 else LABELS[kind],
            "background": False,
            "footprint": None if place % 7 == 2 else f"POLYGON (({ring}))",
            "time": None if place % 5 == 1 else f"2021-{1 + place % 12:02d}-{1 + place % 28:02d}T10:00:00Z",
            "sensor": SENSORS[place % len(SENSORS)],
        })  # fmt: skip
    return rows


def vector_gallery(
    path: Path, n: int = 300, d: int = 8, *, engine: EngineChoice = "auto", seed: int = 0, table: str | None = None
) -> tuple[Gallery, Embeddings, list[dict[str, Any]]]:
    """Return a gallery without an embedder, under a ratio fitted to other chips of the same kinds."""
    X, y = kinds(n, d, seed=seed)
    other, classes = kinds(400, d, seed=seed)
    metric = GaussianLikelihoodRatio().fit(other, classes)
    gallery = Gallery.create(path, metric=metric, dimension=d, engine=engine, table=table)
    rows = rows_of(y, seed)
    gallery.add_embeddings(rows, X)
    return gallery, X, rows
