"""Kills, full disks, damaged files and crowds: what was acknowledged stays, and what goes wrong is told in a sentence.

Kills are signal 9 to real processes at moments drawn from a seed; the full disks are real ones of a few kilobytes.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import save
from tests.gallery import killable
from tests.gallery.galleries import kinds, rows_of, vector_gallery
from tests.gallery.killable import STEP, Child, Nursery

from lookdown import Gallery, GaussianLikelihoodRatio
from lookdown.errors import DamagedCacheWarning, GalleryBusyError, GalleryError, LookdownError
from lookdown.gallery.index import writer
from lookdown.networks import Embedder
from lookdown.progress import Progress, no_progress

pytestmark = pytest.mark.kill

IMAGES = 200
NEVER_FINISHED = r"is no gallery \(gallery\.json is missing\).*run that again|does not exist; make a gallery"


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("said")) as made:
        yield made


@dataclass(slots=True)
class Archive:
    """Images, the network for them, and the gallery that comes of both when nobody interrupts."""

    images: Path
    embedder: Path
    ids: list[str]
    embeddings: NDArray[np.float32]
    takes: dict[str, float] = field(default_factory=dict)  # seconds that the phases of indexing take


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Archive:
    root = tmp_path_factory.mktemp("archive")
    images, embedder = root / "images", root / "embedder"
    images.mkdir()
    rng = np.random.default_rng(0)
    for place in range(IMAGES):
        Image.fromarray(rng.integers(0, 256, (24, 24, 3), np.uint8)).save(images / f"{place:03}.jpg")
    Embedder("test_efficientnet", size=32, dimension=8, weights="none").save(embedder)
    child = nursery.start(killable.index, root / "whole", images, embedder)
    moments = {}
    for phase, enough in PHASES.items():
        child.hear(lambda said, enough=enough: enough(said, 0))  # type: ignore[misc]
        moments[phase] = time.perf_counter()
    child.finish()
    ends = [*list(moments.values())[1:], time.perf_counter()]
    takes = {phase: end - begin for (phase, begin), end in zip(moments.items(), ends, strict=True)}
    takes["steps"] /= IMAGES / STEP  # a step, not all of them
    whole = Gallery.open(root / "whole").snapshot
    assert len(whole) == IMAGES
    return Archive(images, embedder, whole.ids.to_pylist(), whole.embeddings(), takes)


def numbers(said: list[Any]) -> list[int]:
    return [word for word in said if isinstance(word, int)]


# What a process that indexes has said when a phase begins; `chips` is where in the middle.
PHASES: dict[str, Callable[[list[Any], int], bool]] = {
    "making": lambda said, chips: "begins" in said,
    "first step": lambda said, chips: "opened" in said,
    "steps": lambda said, chips: max(numbers(said), default=-1) >= chips and len(numbers(said)) > 0,
    "tidying": lambda said, chips: IMAGES in numbers(said),
}


def check_indexed(path: Path, archive: Archive, acknowledged: int, told: str) -> None:
    """A gallery in the middle opens with all that was acknowledged, nothing twice, and can be searched."""
    if not (path / "gallery.json").exists():
        assert not acknowledged, f"{told}: {acknowledged} chips were in, and now it is no gallery"
        with pytest.raises(GalleryError, match=NEVER_FINISHED):
            Gallery.open(path)
        return
    gallery = Gallery.open(path)
    ids = gallery.snapshot.ids.to_pylist()
    assert len(ids) >= acknowledged, f"{told}: {acknowledged} chips were in, {len(ids)} are left"
    assert ids == archive.ids[: len(ids)], f"{told}: {ids}"
    assert len(np.unique(gallery.snapshot.keys)) == len(ids), f"{told}: a number was given twice"
    np.testing.assert_array_equal(gallery.snapshot.embeddings(), archive.embeddings[: len(ids)], err_msg=told)
    found = gallery.search(archive.embeddings[0], k=3).hits
    assert [hit.id for hit in found[:1]] == ids[:1], told


@pytest.mark.parametrize("kills", [30])
def test_killed_while_indexing_nothing_acknowledged_is_lost_and_the_same_command_ends_with_the_same(
    kills: int, nursery: Nursery, archive: Archive, tmp_path: Path
) -> None:
    chance, done, galleries = random.Random(kills), 0, 0
    while done < kills:
        assert galleries < kills, f"processes end before they can be killed: {done} kills of {galleries} galleries"
        path, acknowledged, history = tmp_path / f"gallery {galleries}", 0, ""
        for phase in ("making", "making", "first step", "steps", "steps", "tidying"):
            child = nursery.start(killable.index, path, archive.images, archive.embedder)
            where = chance.randrange(0, IMAGES, STEP)
            child.hear(lambda said, begun=PHASES[phase], where=where: begun(said, where))  # type: ignore[misc]
            time.sleep(chance.random() * archive.takes[phase])
            killed = child.kill()
            assert killed or child.status == 0, f"{history}, {phase}: {child.said[-1:]}"
            done += killed
            acknowledged = max([acknowledged, *numbers(child.said)])
            history += f", {phase} after {child.said[-1:]}"
            check_indexed(path, archive, acknowledged, f"gallery {galleries}{history}")
        nursery.start(killable.index, path, archive.images, archive.embedder).finish()
        check_indexed(path, archive, IMAGES, f"gallery {galleries}{history}, completed")
        galleries += 1


def test_killed_at_any_change_of_a_file_while_it_is_made_a_gallery_can_be_made_again(
    nursery: Nursery, archive: Archive, tmp_path: Path
) -> None:
    network = Embedder.load(archive.embedder)
    refused = {}
    for last in range(1, 100):
        path = tmp_path / f"gallery {last}"
        child = nursery.start(killable.make, path, archive.embedder, last)
        said = child.join()
        if child.status == 0:
            break
        assert child.kill(), said
        try:
            made = Gallery.open(path) if (path / "gallery.json").exists() else Gallery.create(path, network)
            assert [metric.name for metric in made.metrics()] == ["1-cosine"]
            made.add_embeddings([{"id": "one"}], np.ones((1, 8)), fingerprint=network.fingerprint)
            assert [hit.id for hit in made.search(np.ones(8)).hits] == ["one"]
            assert not leftovers(path), leftovers(path)
        except (LookdownError, AssertionError) as error:
            refused[f"{last}: killed before {said[-1]}"] = str(error)
    assert last > 15, "a gallery is more than a few files"
    assert not refused, json.dumps(refused, indent=1)


def leftovers(path: Path) -> list[str]:
    """What a killed writer left: files half written beside their place, metrics that nobody knows of."""
    hidden = [file for file in path.rglob("*") if file.name.startswith(".") or "#" in file.name]
    registry = path / "metrics"
    unknown = [item for item in registry.iterdir() if item.is_dir() and not (registry / f"{item.name}.json").exists()]
    return [str(item.relative_to(path)) for item in {*hidden, *unknown}]


def check_learnt(path: Path, acknowledged: str, checked: set[str], told: str) -> Gallery:
    """A gallery whose metric was being changed has the old one or the new one in use, whole, and finds by it."""
    gallery = Gallery.open(path)
    names = [metric.name for metric in gallery.metrics()]
    assert gallery.metric in names, f"{told}: {gallery.metric} of {names}"
    assert names.index(gallery.metric) >= names.index(acknowledged), f"{told}: {gallery.metric}, not {acknowledged}"
    new = set(names) - checked
    assert not checked or len(new) <= 1, f"{told}: {new} of {names}, where one step makes one metric"
    for name in new:
        gallery._registry.load(name)
    checked |= set(names)
    X = gallery.snapshot.embeddings()
    scores = gallery._registry.load(gallery.metric).score(X[5:6].astype(np.float64), X.astype(np.float64))[0]
    ids = gallery.snapshot.ids
    found = gallery.search(X[5], k=10, overlap=1)
    assert found.metric == gallery.metric
    assert [hit.id for hit in found.hits] == ids.take(np.argsort(-scores)[:10]).to_pylist(), told
    return gallery


@pytest.mark.parametrize("kills", [30])
def test_killed_while_it_learns_a_gallery_has_the_old_metric_or_the_new_one(
    kills: int, nursery: Nursery, tmp_path: Path
) -> None:
    path = tmp_path / "g"
    X, y = kinds(2_000, 16)
    gallery = Gallery.create(path, metric=GaussianLikelihoodRatio().fit(*kinds(400, 16)), dimension=16)
    rows = [row | {"label": row["label"] if place < 300 else None} for place, row in enumerate(rows_of(y))]
    gallery.add_embeddings(rows, X)
    reader = Gallery.open(path)
    seen = reader.search(X[5], k=10)
    chance, checked, takes = random.Random(kills), set[str](), {}
    for how in ("adapt", "teach", "calibrate"):
        child = nursery.start(killable.learn, path, how, 0)
        child.hear(lambda said: "begins" in said)
        begin = time.perf_counter()
        acknowledged = child.finish()[-1]["metric"]
        takes[how] = time.perf_counter() - begin
    done = turn = 0
    while done < kills:
        assert turn < 3 * kills, f"processes end before they can be killed: {done} of {turn}"
        how = {2: "calibrate", 5: "teach", 7: "calibrate"}.get(turn % 10, "adapt")
        files = sorted((path / "metrics").iterdir())
        child = nursery.start(killable.learn, path, how, turn)
        child.hear(lambda said: "begins" in said)
        if turn % 2:  # most of the time it computes; half of the kills shall come while it writes
            while sorted((path / "metrics").iterdir()) == files and not child.ended:
                time.sleep(0.0005)
            time.sleep(chance.uniform(0, 0.02))
        else:
            time.sleep(chance.random() * takes[how])
        done += child.kill()
        said = child.said
        assert child.status in (0, -9), said[-1:]
        acknowledged = said[-1]["metric"] if said[-1] != "begins" else acknowledged
        told = f"kill {done}, {how}: {said}"
        opened = check_learnt(path, acknowledged, checked, told)
        assert reader.search(X[5], k=10) == seen, f"{told}: a reader from before sees something else"
        if chance.random() < 0.2:
            reader.refresh()
            assert reader.metric == opened.metric, told
            seen = reader.search(X[5], k=10)
        acknowledged = opened.metric
        turn += 1
    assert Gallery.open(path).adapt(clusters=8).changed
    assert not leftovers(path)


def test_killed_at_any_change_of_a_file_while_it_learns_a_gallery_is_whole(nursery: Nursery, tmp_path: Path) -> None:
    base = tmp_path / "base"
    vector_gallery(base, 120)
    wrong = {}
    for last in range(1, 100):
        path = tmp_path / f"gallery {last}"
        shutil.copytree(base, path)
        child = nursery.start(killable.learn, path, "calibrate", 0, last)
        said = child.join()
        if child.status == 0:
            break
        assert child.kill(), said
        try:
            check_learnt(path, "1-trained", set(), str(said))
            assert Gallery.open(path).calibrate().changed
            assert not leftovers(path), leftovers(path)
        except (LookdownError, AssertionError) as error:
            wrong[f"{last}: killed before {said[-1]}"] = str(error)
    assert last > 8, "a metric is more than a few files"
    assert not wrong, json.dumps(wrong, indent=1)


def test_killed_at_any_change_of_a_file_a_metric_is_there_or_forgotten(nursery: Nursery, tmp_path: Path) -> None:
    base = tmp_path / "base"
    vector_gallery(base, 120)[0].adapt(clusters=10, use=False)
    outcomes = set()
    for last in range(1, 100):
        path = tmp_path / f"gallery {last}"
        shutil.copytree(base, path)
        child = nursery.start(killable.forget, path, "2-adapted", last)
        said = child.join()
        if child.status == 0:
            break
        assert child.kill(), said
        opened = check_learnt(path, "1-trained", set(), str(said))
        names = [metric.name for metric in opened.metrics()]
        outcomes.add(len(names))
        if len(names) == 2:
            opened.forget("2-adapted")
        learnt = opened.calibrate()
        assert (learnt.metric, [metric.name for metric in opened.metrics()]) == (
            "3-calibrated",
            ["1-trained", "3-calibrated"],
        )
        assert not leftovers(path), leftovers(path)
    assert last > 3, "a metric is more than a few files"
    assert outcomes == {1, 2}


def test_what_a_killed_step_left_in_the_table_goes_with_the_next_one(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g", 60)
    for folder in ("data", "_versions", "_transactions"):  # as Lance names what it has not finished
        (tmp_path / "g" / "records.lance" / folder / ".tmpAbCdEf").write_bytes(bytes(1000))
    gallery.add_embeddings([{"id": "one more"}], X[:1])
    assert not leftovers(tmp_path / "g")
    assert gallery.search(X[0], k=60).rows_searched == 61


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A disk of that size at a new folder; yields a function that gives it another size."""
    place.mkdir()

    def mount(*options: str) -> None:
        made = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")

    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")
    try:
        yield lambda size: mount("-o", f"remount,size={size}")
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def is_a_sentence(error: LookdownError, *told: object) -> None:
    """One line that names the place, and no line of a library's source."""
    message = str(error)
    assert all(str(word) in message for word in told), message
    assert "\n" not in message, message
    assert "; " in message, f"it does not say what to do: {message}"
    assert not re.search(r"\.rs:\d+|\.py\b|Error\(|Traceback|0x[0-9a-f]{6}", message), f"of a library: {message}"


def index_here(path: Path, archive: Archive, progress: Progress) -> None:
    finished = (path / "gallery.json").exists()
    gallery = Gallery.open(path) if finished else Gallery.create(path, Embedder.load(archive.embedder))
    gallery.add(archive.images, progress=progress)


@pytest.mark.parametrize("size", [4, 16, 440, 480, 700, 1000])
def test_a_disk_that_is_full_keeps_what_was_acknowledged_and_the_same_command_completes_it(
    size: int, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_BATCH_CHIPS", STEP)
    monkeypatch.setattr(writer, "_TIDY_STEPS", killable.TIDY)
    path = tmp_path / "disk" / "g"
    acknowledged = [0]
    with small_disk(tmp_path / "disk", f"{size}k") as resize:
        for _ in range(2):  # a disk that stays full says so again
            with pytest.raises(LookdownError, match="No space left on device") as caught:
                index_here(path, archive, lambda done, total, unit: acknowledged.append(done))
            is_a_sentence(caught.value, path)
            check_indexed(path, archive, max(acknowledged), f"{size} kB")
        resize("20m")
        index_here(path, archive, no_progress)
        check_indexed(path, archive, IMAGES, f"{size} kB, then more")
        assert not leftovers(path)


def test_a_metric_for_which_the_disk_has_no_room_is_not_in_use(tmp_path: Path) -> None:
    path, filler = tmp_path / "disk" / "g", tmp_path / "disk" / "filler"
    outcomes = []
    with small_disk(tmp_path / "disk", "4m"):
        gallery, X, _ = vector_gallery(path, 120)
        acknowledged = "1-trained"
        for room in (0, 4, 8, 12, 16, 20, 24, 32):
            filler.write_bytes(bytes(shutil.disk_usage(path).free - room * 1024))
            before = gallery.search(X[5], k=5)
            try:
                acknowledged = gallery.adapt(clusters=10).metric
                outcomes.append(True)
            except LookdownError as error:
                outcomes.append(False)
                is_a_sentence(error, path, "No space left on device")
                assert Gallery.open(path).metric == acknowledged == gallery.metric, f"{room} kB free"
                assert gallery.search(X[5], k=5) == before, f"{room} kB free"
            filler.unlink()
            check_learnt(path, acknowledged, set(), f"{room} kB free")
        assert gallery.adapt(clusters=10).changed
        assert not leftovers(path)
    assert not outcomes[0]
    assert outcomes[-1], "the disk was to be full at first, and not at last"


Damage = Callable[[Path], object]


def cut(name: str, size: int) -> Damage:
    return lambda path: [file.write_bytes(file.read_bytes()[:size]) for file in path.glob(name)]


def garbage(name: str) -> Damage:
    rng = np.random.default_rng(0)
    return lambda path: [file.write_bytes(rng.bytes(file.stat().st_size)) for file in path.glob(name)]


def missing(name: str) -> Damage:
    def remove(path: Path) -> None:
        for item in list(path.glob(name)):
            shutil.rmtree(item) if item.is_dir() else item.unlink()

    return remove


def text(name: str, content: str) -> Damage:
    return lambda path: (path / name).write_text(content)


def other_beginning(name: str) -> Damage:
    return lambda path: [file.write_bytes(b"...." + file.read_bytes()[4:]) for file in path.glob(name)]


def described(**changes: object) -> Damage:
    def change(path: Path) -> None:
        told = json.loads((path / "gallery.json").read_text()) | changes
        kept = {name: value for name, value in told.items() if value != "none"}
        (path / "gallery.json").write_text(json.dumps(kept))

    return change


TABLE = r"the table of .* cannot be (opened|read)"
CHOOSE = r"choose a metric again with `lookdown gallery metrics .* --use NAME`"
DAMAGE: dict[str, tuple[Damage, str]] = {
    "another version": (described(version=9, lookdown="7.1"), r"version 9, made by lookdown 7\.1; this one reads"),
    "gallery.json cut off": (cut("gallery.json", 40), r"gallery\.json cannot be read: .*; restore it from a copy"),
    "gallery.json empty": (cut("gallery.json", 0), r"gallery\.json cannot be read: .*; restore it from a copy"),
    "gallery.json garbage": (garbage("gallery.json"), r"gallery\.json cannot be read: .*; restore it from a copy"),
    "gallery.json of something else": (text("gallery.json", "[1]"), r"gallery\.json does not describe a gallery"),
    "gallery.json without a dimension": (described(dimension="none"), r"gallery\.json .*; restore it from a copy"),
    "gallery.json with an odd dimension": (described(dimension="eight"), r"gallery\.json .*; restore it from a copy"),
    "gallery.json missing": (missing("gallery.json"), NEVER_FINISHED),
    "current missing": (missing("metrics/current"), CHOOSE),
    "current empty": (cut("metrics/current", 0), CHOOSE),
    "current garbage": (lambda path: (path / "metrics" / "current").write_bytes(b"\xff\xfe\0"), CHOOSE),
    "current unknown": (text("metrics/current", "9-none\n"), rf"9-none.*{CHOOSE}"),
    "metric cut off": (cut("metrics/2-adapted/metric.safetensors", 100), r"2-adapted is not as it was saved"),
    "metric garbage": (garbage("metrics/2-adapted/metric.safetensors"), r"2-adapted is not as it was saved"),
    "metric.json cut off": (cut("metrics/2-adapted/metric.json", 100), r"2-adapted.* cannot be read"),
    "metric missing": (missing("metrics/2-adapted"), r"2-adapted holds no metric"),
    "note cut off": (cut("metrics/2-adapted.json", 30), r"2-adapted\.json is damaged .*; use another metric"),
    "table missing": (missing("records.lance"), TABLE),
    "data missing": (missing("records.lance/data/*.lance"), TABLE),
    "data cut off": (cut("records.lance/data/*.lance", 200), TABLE),
    "data empty": (cut("records.lance/data/*.lance", 0), TABLE),
    "data garbage": (garbage("records.lance/data/*.lance"), TABLE),
    "versions missing": (missing("records.lance/_versions"), TABLE),
    "versions cut off": (cut("records.lance/_versions/*.manifest", 50), TABLE),
    "versions empty": (cut("records.lance/_versions/*", 0), TABLE),
    "versions garbage": (garbage("records.lance/_versions/*"), TABLE),
    "versions begin otherwise": (other_beginning("records.lance/_versions/*.manifest"), TABLE),  # Lance panics
}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery with two metrics, the second in use, to be copied and damaged."""
    path = tmp_path_factory.mktemp("adapted") / "g"
    vector_gallery(path, 120)[0].adapt(clusters=10)
    return path


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_damaged_is_told_in_a_sentence(name: str, adapted: Path, tmp_path: Path) -> None:
    damage, message = DAMAGE[name]
    path = tmp_path / "g"
    shutil.copytree(adapted, path)
    X = Gallery.open(path).snapshot.embeddings()
    damage(path)
    with pytest.raises(LookdownError, match=message) as caught:
        Gallery.open(path).search(X[5])
    is_a_sentence(caught.value, path)
    more: list[Callable[[Gallery], object]] = [
        lambda gallery: gallery.add_embeddings([{"id": "one more"}], X[:1]),
        lambda gallery: gallery.label(["chip '0' -- 0"], ["x"]),
        lambda gallery: gallery.remove(["chip '1' -- 1"]),
        lambda gallery: gallery.calibrate(),
        lambda gallery: gallery.adapt(clusters=10),
        lambda gallery: gallery.stats(),
    ]
    for act in more:  # some of these can be done, the others are refused in a sentence as well
        try:
            act(Gallery.open(path))
        except LookdownError as error:
            is_a_sentence(error, path)


@pytest.mark.parametrize("name", [name for name in DAMAGE if name.split()[0] in ("current", "metric", "note")])
def test_another_metric_can_be_chosen_where_the_one_in_use_is_damaged(name: str, adapted: Path, tmp_path: Path) -> None:
    path = tmp_path / "g"
    shutil.copytree(adapted, path)
    X = Gallery.open(path).snapshot.embeddings()
    DAMAGE[name][0](path)
    Gallery.open(path).use("1-trained")
    assert Gallery.open(path).search(X[5]).metric == "1-trained"
    assert Gallery.open(path).adapt(clusters=10).changed


@pytest.mark.parametrize("content", [b"\xff\xfe\0\n", b"a,b\n1,2\n", b"item\nx\n", b'item,reason\n"cut o', bytes(30)])
def test_a_damaged_list_of_skipped_images_stops_nobody(content: bytes, archive: Archive, tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", Embedder.load(archive.embedder))
    (tmp_path / "g" / "skipped.csv").write_bytes(content)
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    added = gallery.add([tmp_path / "bad.jpg", archive.images / "000.jpg"])
    assert added.added == 1
    assert len(added.skipped) == 1
    assert "bad.jpg" in (tmp_path / "g" / "skipped.csv").read_text()


def test_embeddings_of_two_networks_are_not_mixed(archive: Archive, tmp_path: Path) -> None:
    Gallery.create(tmp_path / "g", Embedder.load(archive.embedder)).add(archive.images / "000.jpg")
    another = Embedder("test_efficientnet", size=32, dimension=8, weights="none", seed=1)
    another.save(tmp_path / "g" / "embedder", overwrite=True)
    with pytest.raises(LookdownError, match="embedder") as caught:
        Gallery.open(tmp_path / "g").add(archive.images / "001.jpg")
    is_a_sentence(caught.value, tmp_path / "g")
    with pytest.raises(LookdownError, match="embedder"):
        Gallery.open(tmp_path / "g").search(archive.images / "000.jpg")
    shutil.rmtree(tmp_path / "g" / "embedder")
    with pytest.raises(LookdownError, match="holds no embedder") as caught:
        Gallery.open(tmp_path / "g").add(archive.images / "001.jpg")
    is_a_sentence(caught.value, tmp_path / "g")


def test_a_place_where_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LookdownError, match="Not a directory") as caught:
        Gallery.create(tmp_path / "file" / "g", dimension=8)
    is_a_sentence(caught.value, tmp_path / "file" / "g")
    with small_disk(tmp_path / "disk", "1m") as change:
        change("1m,ro")
        with pytest.raises(LookdownError, match="Read-only file system") as caught:
            Gallery.create(tmp_path / "disk" / "g", dimension=8)
        is_a_sentence(caught.value, tmp_path / "disk" / "g")


def with_lists(path: Path) -> tuple[NDArray[np.float32], list[list[str]]]:
    """Make a gallery with the lists of an approximate index on disk; return its embeddings and what is found by it."""
    gallery, X, _ = vector_gallery(path, 1_500, 16, engine="ivf")
    found = searched(gallery, X)
    assert (path / "index" / "lists.safetensors").is_file()
    return X, found


def searched(gallery: Gallery, X: NDArray[np.float32]) -> list[list[str]]:
    results = [gallery.search(x, k=10) for x in X[:30]]
    assert {found.engine for found in results} == {"ivf"}
    return [[hit.id for hit in found.hits] for found in results]


@pytest.mark.parametrize("size", [0, 7, 60, 5_000, -1, "garbage", "of something else"])
def test_a_damaged_index_is_built_again(size: int | str, tmp_path: Path) -> None:
    path = tmp_path / "g"
    file = path / "index" / "lists.safetensors"
    X, found = with_lists(path)
    whole = file.read_bytes()
    if isinstance(size, int):
        file.write_bytes(whole[:size])
    elif size == "garbage":
        file.write_bytes(np.random.default_rng(0).bytes(len(whole)))
    else:
        file.write_bytes(save({"keys": np.arange(3.0), "lists": np.zeros(3, np.int32)}))
    with pytest.warns(DamagedCacheWarning, match=r"lists\.safetensors is damaged .*; the index is built again"):
        assert searched(Gallery.open(path, engine="ivf"), X) == found
    assert file.read_bytes() == whole, "the seed is the same, and so are the lists"
    assert searched(Gallery.open(path, engine="ivf"), X) == found  # a warning would be an error now


def test_an_index_that_is_gone_is_built_again_in_silence(tmp_path: Path) -> None:
    X, found = with_lists(tmp_path / "g")
    shutil.rmtree(tmp_path / "g" / "index")
    assert searched(Gallery.open(tmp_path / "g", engine="ivf"), X) == found


def test_lists_of_chips_that_are_gone_are_not_those_of_chips_that_came_later(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 300, engine="ivf")
    gallery.search(X[0])
    before = set(gallery.snapshot.keys.tolist())
    gallery.remove([row["id"] for row in rows[250:]])
    gallery.add_embeddings([{"id": f"new {place}"} for place in range(50)], -X[250:])
    new = gallery.snapshot.keys[gallery.snapshot.find([f"new {place}" for place in range(50)])]
    assert not before & set(new.tolist()), "a number that a chip had was given to another"
    exact = Gallery.open(tmp_path / "g", engine="exact")
    opened = Gallery.open(tmp_path / "g", engine="ivf")
    for x in -X[250:]:
        best = exact.search(x, k=1).hits[0].id
        assert best in [hit.id for hit in opened.search(x, k=3).hits]


def test_a_writer_that_stands_still_keeps_others_out_and_a_killed_one_lets_them_in(
    nursery: Nursery, archive: Archive, tmp_path: Path
) -> None:
    path = tmp_path / "g"
    first = nursery.start(killable.index, path, archive.images, archive.embedder)
    first.hear(lambda said: len(numbers(said)) >= 3)
    first.stop()
    second = nursery.start(killable.index, path, archive.images, archive.embedder)
    last = second.join()[-1]
    assert (second.status, last["error"]) == (1, "GalleryBusyError"), last
    assert f"{path} is being written to by process {first.pid}; wait until it is done" in last["message"]
    reader = Gallery.open(path)
    assert len(reader) >= 3 * STEP
    assert len(reader.search(archive.embeddings[0], k=5)) == 5
    for act in (
        reader.adapt,
        reader.calibrate,
        lambda: reader.use("1-cosine"),
        lambda: reader.remove([archive.ids[0]]),
    ):
        with pytest.raises(GalleryBusyError, match=f"by process {first.pid}"):
            act()
    assert first.kill()
    nursery.start(killable.index, path, archive.images, archive.embedder).finish()
    check_indexed(path, archive, IMAGES, "by the third")


def test_of_two_that_index_at_once_one_is_told_to_wait(nursery: Nursery, archive: Archive, tmp_path: Path) -> None:
    path = tmp_path / "g"
    both = [nursery.start(killable.index, path, archive.images, archive.embedder) for _ in range(2)]
    for child in both:
        child.join()
    told = [child.said[-1] for child in both]
    for child in both:
        assert child.status == 0 or child.said[-1]["error"] in ("GalleryBusyError", "GalleryError"), told
    assert 0 in [child.status for child in both], told
    check_indexed(path, archive, IMAGES, str(told))
    assert sum(word.get("added", 0) for word in told) == IMAGES, told


def test_a_gallery_is_not_made_over_one_that_another_process_has_just_made(nursery: Nursery, tmp_path: Path) -> None:
    late = nursery.start(killable.make_late, tmp_path / "g")
    late.until_stopped()
    gallery, X, _ = vector_gallery(tmp_path / "g", 50)
    late.go_on()
    last = late.join()[-1]
    assert last["error"] == "GalleryError", last
    assert f"{tmp_path / 'g'} is a gallery already" in last["message"]
    assert not gallery.refresh()
    assert Gallery.open(tmp_path / "g").search(X[0]).metric == "1-trained"


@pytest.mark.parametrize("rounds", [25])
def test_readers_see_only_whole_states_while_others_write(rounds: int, nursery: Nursery, tmp_path: Path) -> None:
    path, until = tmp_path / "g", tmp_path / "until"
    vector_gallery(path, 300)
    readers = [nursery.start(killable.read, path, until) for _ in range(2)]
    for reader in readers:
        reader.hear(lambda said: len(said) > 0)
    changed = nursery.start(killable.change, path, rounds).finish()
    until.touch()
    seen = [reader.finish() for reader in readers]
    states = {tuple(state) for said in seen for state in said}
    assert len(changed) == rounds
    assert len({metric for metric, _ in states}) > 2, states
    assert len({chips for _, chips in states}) > 2, states


def test_readers_see_only_whole_steps_while_images_are_indexed(
    nursery: Nursery, archive: Archive, tmp_path: Path
) -> None:
    path, until = tmp_path / "g", tmp_path / "until"
    writer = nursery.start(killable.index, path, archive.images, archive.embedder)
    writer.hear(lambda said: len(numbers(said)) >= 1)
    readers: list[Child] = [nursery.start(killable.read, path, until) for _ in range(2)]
    writer.finish()
    until.touch()
    chips = {count for reader in readers for _, count in reader.finish()}
    assert all(count % STEP == 0 for count in chips), chips
