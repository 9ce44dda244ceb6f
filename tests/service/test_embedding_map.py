"""A plane through the embeddings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.gallery.galleries import vector_gallery

from lookdown import Gallery
from lookdown.service.embedding_map import Plane, points, sample


def test_the_plane_keeps_as_much_as_two_dimensions_can(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g", n=200)
    plane = Plane.of(gallery.snapshot)
    x = X / np.linalg.norm(X, axis=1, keepdims=True)
    found = plane.project(X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), np.linalg.svd(x - x.mean(axis=0))[1][:2], rtol=1e-5)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_array_equal(Plane.of(gallery.snapshot).axes, plane.axes)
    told = points(gallery.snapshot, plane, np.array([3, 0]))
    assert [one["id"] for one in told] == gallery.snapshot.ids.take([3, 0]).to_pylist()
    np.testing.assert_allclose([[one["x"], one["y"]] for one in told], found[[3, 0]], atol=1e-6)


def test_one_dimension_and_no_chips_are_planes_too(tmp_path: Path) -> None:
    thin = Gallery.create(tmp_path / "thin", dimension=1)
    thin.add_embeddings([{"id": "a"}, {"id": "b"}], [[1.0], [-2.0]])
    told = points(thin.snapshot, Plane.of(thin.snapshot), np.array([0, 1]))
    assert [(one["x"], one["y"]) for one in told] == [(1.0, 0.0), (-1.0, 0.0)]
    empty = Gallery.create(tmp_path / "empty", dimension=3)
    assert points(empty.snapshot, Plane.of(empty.snapshot), sample(0, 10)) == []


def test_a_sample_is_always_the_same() -> None:
    assert sample(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert sample(1_000, 10).tolist() == sample(1_000, 10).tolist()
    assert len(set(sample(1_000, 10).tolist())) == 10
