"""A metric estimated by Ray nodes from the table is the one that a process estimates from memory."""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from tests.gallery.galleries import kinds, rows_of, vector_gallery
from tests.gallery.scale.ray_nodes import RayNodes

from lookdown.errors import WorkersError
from lookdown.gallery import Gallery
from lookdown.gallery.scale import ray_cluster
from lookdown.gallery.scale.ray_cluster import RayCluster, RayShards, ray_shards
from lookdown.gallery.store.snapshot import Embeddings
from lookdown.gallery.store.table import ChipTable, TableLocation
from lookdown.metrics import PairMoments


def holed(path: Path) -> Gallery:
    """A table in several fragments, of which rows are gone."""
    gallery, _, _ = vector_gallery(path, 600)
    X, y = kinds(400, seed=9)
    gallery.add_embeddings([row | {"id": f"more {row['id']}"} for row in rows_of(y)], X)
    ids = gallery.snapshot.ids.to_pylist()
    gallery.remove([ids[place] for place in (0, 5, 6, 7, 333, 599, 700, 999)])
    return gallery


def moments(rows: Embeddings, begin: int) -> PairMoments:
    return PairMoments.of(rows, (begin + np.arange(len(rows))) % 7)


def test_metrics_and_moments_are_those_of_one_process(
    nodes: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_SHARD_ROWS", (128, 1024))
    gallery = holed(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.label(ids[:40], [f"kind {place % 4}" for place in range(40)])
    with ray_shards(ChipTable.open(TableLocation(gallery.path)), nodes.address) as parts:
        found = reduce(add, parts.map(moments))
    whole = moments(gallery.snapshot.embeddings(), 0)
    assert found.samples == whole.samples == 992
    np.testing.assert_allclose(found.same_covariance, whole.same_covariance, rtol=1e-10)
    np.testing.assert_allclose(found.different_covariance, whole.different_covariance, rtol=1e-10)
    alone = gallery.adapt(use=False)
    together = gallery.adapt(use=False, workers=nodes.address)
    assert alone.changed
    assert (together.helped, together.reason) == (alone.helped, alone.reason)
    X = gallery.snapshot.embeddings(np.arange(50))
    first, second = (gallery.read_metric(learnt.metric).score(X, X) for learnt in (alone, together))
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8)


def test_rows_are_fetched_and_read_in_parts_as_the_snapshot_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_SHARD_ROWS", (128, 1024))
    monkeypatch.setattr(
        RayCluster, "map", lambda self, work, jobs: reversed([(index, work(job)) for index, job in enumerate(jobs)])
    )
    gallery = holed(tmp_path / "g")
    table, snapshot = ChipTable.open(TableLocation(gallery.path)), gallery.snapshot
    parts = RayShards(RayCluster("here", 2), table, snapshot)
    gallery.remove([snapshot.ids[0].as_py()])  # later than the snapshot
    whole = snapshot.embeddings()
    assert parts.shape == whole.shape
    np.testing.assert_array_equal(parts[:], whole)
    np.testing.assert_array_equal(parts[:1], whole[:1])
    np.testing.assert_array_equal(parts[np.array([7, 3, 900])], whole[[7, 3, 900]])
    read = [*parts.map(lambda rows, begin: (begin, rows))]
    assert [begin for begin, _ in read] == sorted(begin for begin, _ in read)
    assert len(read) == 4
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in read]), whole)


def test_a_table_that_a_node_does_not_see_is_told() -> None:
    with pytest.raises(WorkersError, match="no table at /nowhere; put the gallery on a disk that every node has"):
        ray_cluster._OnRows("/nowhere", 1, {}, moments)(range(5))
