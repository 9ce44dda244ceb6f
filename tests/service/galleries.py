"""A small gallery with pictures, labels, times and places, under a calibrated metric, and a client for it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from starlette.testclient import TestClient

from lookdown import Embedder, Gallery, GaussianLikelihoodRatio, KindLikelihoodRatio
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.service import ServiceSettings, create_app

KINDS = ("tanker", "ferry", "a/b <i>'", "tug")
CHIPS = 96
SIDE = 32


def pixels(kind: int, seed: int) -> NDArray[np.uint8]:
    """Return a picture of a kind: bars of its own width and colour, and noise."""
    rng = np.random.default_rng([kind, seed])
    picture = rng.normal(90, 12, (SIDE, SIDE, 3))
    picture[:, :: kind + 2, kind % 3] += 110
    return np.asarray(picture.clip(0, 255), np.uint8)


def encoded(picture: NDArray[np.uint8], kind: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, kind, **options)
    return stream.getvalue()


def make_gallery(folder: Path, *, calibrated: bool = True) -> Gallery:
    """Return a gallery of a few kinds, each fourth chip without a label, and some background."""
    embedder = Embedder("test_efficientnet", size=SIDE, dimension=8, weights="none").eval()
    kinds = np.arange(CHIPS) % (len(KINDS) + 1)
    pictures = [pixels(int(kind), seed) for seed, kind in enumerate(kinds)]
    x = embedder.embed(np.stack(pictures).transpose(0, 3, 1, 2))
    metric = GaussianLikelihoodRatio().fit(x, kinds)
    if calibrated:
        metric.calibrate(x, kinds, np.arange(CHIPS) % 24)
    gallery = Gallery.create(folder, embedder, metric, about="fitted to bars")
    gallery.add_embeddings([_row(n, int(k), p) for n, (k, p) in enumerate(zip(kinds, pictures, strict=True))], x,
                           fingerprint=embedder.fingerprint)  # fmt: skip
    return gallery


def use_kinds(gallery: Gallery) -> None:
    """Put a metric into use that names the kinds of the gallery."""
    x, labels = gallery.snapshot.embeddings(), gallery.snapshot.texts("label")
    known = [label is not None for label in labels]
    metric = KindLikelihoodRatio(temperature=2.0).fit(x[known], [label for label in labels if label is not None])
    gallery._registry.use(gallery._registry.add(metric, "taught", "fitted to the labels").name)
    gallery.refresh()


def _row(number: int, kind: int, picture: NDArray[np.uint8]) -> dict[str, Any]:
    lon, lat = 4 + number % 10 / 10, 52 + number // 10 / 10
    ring = f"{lon} {lat}, {lon + 0.01} {lat}, {lon + 0.01} {lat + 0.01}, {lon} {lat}"
    empty = kind == len(KINDS)
    return {
        "id": f"bars/{kind}/chip {number}%2F?#é.png",
        "source": f"/secret/archive/{number}.png",
        "scene": f"scene {number % 8}",
        "scene_group": f"place {number % 24}",
        "label": None if empty or number % 4 == 3 else KINDS[kind],
        "background": empty,
        "footprint": f"POLYGON (({ring}))" if number % 6 else None,
        "time": f"2025-{1 + number % 12:02}-03T10:00:00Z" if number % 7 else None,
        "sensor": "S2A" if number % 2 else None,
        "gsd": 1.5,
        "thumbnail": thumbnail(picture),
    }


@contextmanager
def client_of(gallery: Gallery, **settings: Any) -> Iterator[TestClient]:
    """Yield a client of a service in this process, as a browser on this machine would call it."""
    app = create_app(gallery, ServiceSettings(**{"refresh_seconds": 0.05, **settings}))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client
