"""A gallery filled by Ray nodes is the one that a process fills, also when a node or the driver is killed meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image
from tests.gallery.scale.ray_nodes import RayNodes
from tests.gallery.scale.running_milvus import free_ports

from lookdown.errors import WorkersError
from lookdown.gallery import Cutting, Gallery
from lookdown.gallery.index.sources import chip_groups
from lookdown.gallery.index.writer import AddReport, ChipRegistry
from lookdown.gallery.scale import ray_indexing
from lookdown.gallery.scale.ray_cluster import RayCluster
from lookdown.gallery.store.table import ChipTable, TableLocation
from lookdown.networks import Embedder

CHIPS = 160
CUTTING = Cutting(scene_side=200, windows=(48,), classes=True, time="2021-06-01", sensor="S2A")
COLUMNS = [
    "id", "source", "scene", "scene_group", "polygon", "footprint", "west", "north", "time", "sensor", "gsd", "label",
    "background", "marked", "thumbnail",
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder("test_efficientnet", size=32, weights="none", dimension=8)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chips of two classes and of places, a scene, and files that cannot be read."""
    folder = tmp_path_factory.mktemp("archive") / "images"
    rng = np.random.default_rng(0)
    for place in range(CHIPS):
        path = folder / ("tanker", "background")[place % 2] / f"{place:03}.{('png', 'jpg')[place % 3 == 0]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (24, 30, 3), np.uint8)).save(path)
    Image.fromarray(rng.integers(0, 256, (220, 220, 3), np.uint8)).save(folder / "scene.png")
    earth: dict[str, Any] = {"crs": "EPSG:32631", "transform": rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)}
    with rasterio.open(folder / "t.tif", "w", count=3, height=20, width=20, dtype="uint8", **earth) as file:
        file.write(rng.integers(0, 256, (3, 20, 20), dtype=np.uint8))
    (folder / "tanker" / "text.png").write_text("this is not a ship")
    (folder / "empty.jpg").touch()
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, archive: Path, embedder: Embedder) -> tuple[Gallery, AddReport]:
    """What one process makes of it."""
    gallery = Gallery.create(tmp_path_factory.mktemp("whole") / "gallery", embedder)
    return gallery, gallery.add(archive, cutting=CUTTING)


def assert_same(gallery: Gallery, whole: Gallery) -> None:
    found, wanted = gallery.snapshot, whole.snapshot
    rows = np.arange(len(wanted))
    assert found.ids.to_pylist() == wanted.ids.to_pylist()
    assert repr(found.read(rows, COLUMNS)) == repr(wanted.read(rows, COLUMNS))
    np.testing.assert_allclose(found.embeddings(), wanted.embeddings(), rtol=1e-5, atol=1e-6)
    assert (np.diff(found.keys) > 0).all()
    found_csv, wanted_csv = ((one.path / "skipped.csv").read_text() for one in (gallery, whole))
    assert sorted(found_csv.splitlines()) == sorted(wanted_csv.splitlines())


@pytest.mark.server
def test_ray_nodes_fill_a_table_in_a_bucket(
    nodes: RayNodes, table: str, archive: Path, embedder: Embedder, whole: tuple[Gallery, AddReport], tmp_path: Path
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", embedder, table=table)
    gallery.add(archive, cutting=CUTTING, workers=nodes.address)
    assert_same(gallery, whole[0])
    alone = Gallery.open(shutil.copytree(whole[0].path, tmp_path / "alone"))
    metrics = []
    for one, workers in ((gallery, nodes.address), (alone, None)):
        learnt = one.adapt(4, method="cplfpa", workers=workers)
        metrics.append(one.search(archive / "t.tif", k=20, metric=learnt.metric))
    assert [hit.id for hit in metrics[0].hits] == [hit.id for hit in metrics[1].hits]


def test_ray_nodes_fill_a_gallery_as_one_process_does(
    nodes: RayNodes, archive: Path, embedder: Embedder, whole: tuple[Gallery, AddReport], tmp_path: Path
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", embedder)
    told: list[tuple[int, int]] = []
    added = gallery.add(
        archive, cutting=CUTTING, workers=nodes.address, progress=lambda done, met, unit: told.append((done, met or 0))
    )
    assert added == whole[1]
    assert_same(gallery, whole[0])
    assert told == sorted(told)
    assert told[-1] == (added.added + 2, added.added + 2)
    again = gallery.add(archive, cutting=CUTTING, workers=nodes.address)
    assert (again.added, again.present) == (0, added.added)
    assert again.skipped == added.skipped
    assert [hit.id for hit in gallery.search(archive / "tanker" / "002.png", k=1).hits] == ["images/tanker/002.png"]


@pytest.mark.server
def test_a_node_that_is_killed_loses_and_doubles_nothing(
    nodes: RayNodes,
    archive: Path,
    embedder: Embedder,
    whole: tuple[Gallery, AddReport],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each node has one processor and none to spare; jobs are small, so that many are still to be done."""
    monkeypatch.setattr(ray_indexing, "_JOB_CHIPS", (4, 4))
    victim = nodes.nodes[-1]
    killed_at: list[int] = []
    workers_of: list[str] = []
    real = RayCluster.map

    def watched(self: RayCluster, work: Any, jobs: Any) -> Iterator[Any]:
        for place, outcome in real(self, work, jobs):
            workers_of.append(outcome.node_id)
            yield place, outcome

    def progress(done: int, total: int | None, unit: str) -> None:
        if not killed_at and victim.node_id in workers_of:
            killed_at.append(done)
            nodes.kill(victim)

    monkeypatch.setattr(RayCluster, "map", watched)
    gallery = Gallery.create(tmp_path / "gallery", embedder)
    try:
        added = gallery.add(archive, cutting=CUTTING, workers=nodes.address, progress=progress)
    finally:
        nodes.add()
    assert killed_at
    assert killed_at[0] < len(gallery) - 20
    assert added == whole[1]
    assert_same(gallery, whole[0])


@pytest.mark.server
def test_who_is_no_node_fills_and_adapts_a_gallery_all_the_same(
    archive: Path, embedder: Embedder, whole: tuple[Gallery, AddReport], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    gallery = Gallery.create(tmp_path / "gallery", embedder)
    with RayNodes(1, door=port):
        assert gallery.add(archive, cutting=CUTTING, workers=f"ray://127.0.0.1:{port}") == whole[1]
        learnt = gallery.adapt(5, method="cplfpa", workers=f"ray://127.0.0.1:{port}")
    assert_same(gallery, whole[0])
    assert learnt.reason == whole[0].adapt(5, method="cplfpa").reason


DRIVER = """
import sys
from lookdown.gallery import Cutting, Gallery
from lookdown.gallery.scale import ray_indexing

ray_indexing._STEP_CHIPS = ray_indexing._JOBS_PER_CPU = {step}
ray_indexing._JOB_CHIPS = {step}, {step}
ray_indexing._step_chips = lambda cluster: {step}
def said(done, met, unit):
    print(done, flush=True)
cutting = Cutting(scene_side=200, windows=(48,), classes=True, time="2021-06-01", sensor="S2A")
Gallery.open(sys.argv[1]).add(sys.argv[2], cutting=cutting, workers="ray", progress=said)
"""


@pytest.mark.server
def test_a_driver_that_is_killed_leaves_whole_steps_and_the_next_goes_on(
    archive: Path, embedder: Embedder, whole: tuple[Gallery, AddReport], tmp_path: Path, nodes: RayNodes
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", embedder)
    step = 16
    command = [sys.executable, "-c", DRIVER.format(step=step), str(gallery.path), str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            if int(line) >= 3 * step:
                driver.send_signal(signal.SIGKILL)
                break
        assert driver.wait(60) == -signal.SIGKILL
    gallery.refresh()
    acknowledged = len(gallery)
    assert 2 * step <= acknowledged < len(whole[0])
    assert gallery.snapshot.ids.to_pylist() == whole[0].snapshot.ids.to_pylist()[:acknowledged]
    added = gallery.add(archive, cutting=CUTTING, workers=nodes.address)
    assert (added.present, added.added) == (acknowledged, len(whole[0]) - acknowledged)
    assert_same(gallery, whole[0])
    until_gone(driver.pid)


def until_gone(driver: int) -> None:
    """Wait until nothing is left of what a driver that was killed had started."""
    deadline = time.monotonic() + 60
    while left := [path for path in Path("/proc").glob("[0-9]*") if f"_{driver}/" in _command(path)]:
        assert time.monotonic() < deadline, f"{[_command(path) for path in left]} outlive the driver {driver}"
        time.sleep(0.2)


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


# In this process, as a node does it


@pytest.fixture
def work(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Gallery, ray_indexing._Embedding]:
    gallery = Gallery.create(tmp_path / "gallery", embedder)
    records = ChipTable.open(TableLocation(gallery.path))
    monkeypatch.setattr(ray_indexing, "_open_network", lambda network: embedder)
    monkeypatch.setattr(ray_indexing, "_node_id", lambda: "here")
    return gallery, ray_indexing._Embedding(None, records.location.uri, records.location.storage_options)


def test_a_job_is_written_beside_the_table_and_becomes_part_of_it_by_a_commit(
    archive: Path, work: tuple[Gallery, ray_indexing._Embedding]
) -> None:
    gallery, embedding = work
    records = ChipTable.open(TableLocation(gallery.path))
    known = ChipRegistry(records)
    ((parts, told), last) = ray_indexing._steps(chip_groups([archive], CUTTING), known, 100)
    jobs = ray_indexing._jobs(parts, known, RayCluster("here", 2))
    assert {job.chips for job in jobs[:-1]} == {ray_indexing._JOB_CHIPS[0]}
    outcomes = [embedding(job) for job in jobs]
    assert not len(records.snapshot())
    result = AddReport()
    ray_indexing._commit(records, outcomes, known, result)
    assert result.added == len(records.snapshot()) == sum(outcome.added for outcome in outcomes)
    assert len(told.positions) >= 100
    assert last[1].present == 0
    assert sum(len(outcome.failed) for outcome in outcomes) == len(result.skipped)


def test_images_that_a_node_does_not_see_are_told_and_not_taken_for_broken_ones(
    archive: Path, work: tuple[Gallery, ray_indexing._Embedding], tmp_path: Path
) -> None:
    gallery, embedding = work
    shutil.copytree(archive / "tanker", tmp_path / "tanker")
    records = ChipTable.open(TableLocation(gallery.path))
    known = ChipRegistry(records)
    ((parts, _),) = ray_indexing._steps(chip_groups([tmp_path / "tanker"], Cutting()), known, 1000)
    (tmp_path / "tanker").rename(tmp_path / "unmounted")
    (job,) = ray_indexing._jobs(parts, known, RayCluster("here", 1))[:1]
    outcome = embedding(job)
    ray_indexing._commit(records, [], known, AddReport())
    (tmp_path / "unmounted").rename(tmp_path / "tanker")
    with pytest.raises(WorkersError, match=r"does not see .*tanker/.*, which is here; give every node the images"):
        ray_indexing._commit(records, [outcome], known, AddReport())


def test_a_table_that_a_node_does_not_see_is_refused(
    archive: Path, work: tuple[Gallery, ray_indexing._Embedding]
) -> None:
    gallery, embedding = work
    records = ChipTable.open(TableLocation(gallery.path))
    known = ChipRegistry(records)
    ((parts, _),) = ray_indexing._steps(chip_groups([archive], CUTTING), known, 1000)
    (job, *_) = ray_indexing._jobs(parts, known, RayCluster("here", 1))
    there = embedding(job)
    for file in there.fragments[0].files:
        os.unlink(Path(records.location.uri, "data", file.path))  # noqa: PTH108  # as if it were on the disk of the node
    blind = ray_indexing._Embedding(None, "/nowhere/records.lance", {})(job)
    assert blind.unseen == ["/nowhere/records.lance"]
    blind.unseen = [records.location.uri]
    for outcome in (there, blind):
        with pytest.raises(WorkersError, match=r"does not see the table at .*; put the gallery on a disk that every"):
            ray_indexing._commit(records, [outcome], known, AddReport())
    assert not len(records.snapshot())
