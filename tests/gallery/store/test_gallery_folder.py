"""What a folder says of itself, and one writer at a time."""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.synchronize
from pathlib import Path

import pytest

from lookdown.errors import GalleryBusyError, GalleryError
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.gallery.store.table import TableLocation


def finished(path: Path) -> GalleryFolder:
    folder = GalleryFolder(path, 8, "abc", TableLocation(path))
    folder.write()
    return folder


def test_a_gallery_reads_back_what_it_is(tmp_path: Path) -> None:
    assert GalleryFolder.open(finished(tmp_path).path) == GalleryFolder(tmp_path, 8, "abc", TableLocation(tmp_path))


def test_what_is_no_gallery_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match="does not exist; make a gallery with `lookdown index`"):
        GalleryFolder.open(tmp_path / "none")
    with pytest.raises(GalleryError, match=r"is no gallery \(gallery\.json is missing\)"):
        GalleryFolder.open(tmp_path)
    (tmp_path / "gallery.json").write_text("{")
    with pytest.raises(GalleryError, match=r"gallery\.json cannot be read"):
        GalleryFolder.open(tmp_path)
    (tmp_path / "gallery.json").write_text("[1]")
    with pytest.raises(GalleryError, match="does not describe a gallery"):
        GalleryFolder.open(tmp_path)


def test_a_gallery_of_another_version_is_refused(tmp_path: Path) -> None:
    finished(tmp_path)
    description = json.loads((tmp_path / "gallery.json").read_text())
    (tmp_path / "gallery.json").write_text(json.dumps(description | {"version": 9, "lookdown": "7.1"}))
    with pytest.raises(GalleryError, match=r"version 9, made by lookdown 7\.1; this one reads version 1: use that"):
        GalleryFolder.open(tmp_path)


def test_a_gallery_is_not_made_among_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(GalleryError, match=r"holds other things \(thesis\.tex\)"):
        GalleryFolder.refuse_foreign(tmp_path)
    with pytest.raises(GalleryError, match="is a file"):
        GalleryFolder.refuse_foreign(tmp_path / "thesis.tex")


def test_what_an_unfinished_gallery_left_is_in_nobodys_way(tmp_path: Path) -> None:
    for name in ("metrics", "records.lance", "embedder"):
        (tmp_path / name).mkdir()
    GalleryFolder.refuse_foreign(tmp_path)


def hold(path: Path, held: multiprocessing.synchronize.Event) -> None:
    with GalleryFolder.open(path).writing():
        held.set()
        multiprocessing.Event().wait()


def test_a_second_writer_is_told_who_the_first_is_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    writer = spawn.Process(target=hold, args=(tmp_path, held))
    writer.start()
    try:
        assert held.wait(60)
        with (
            pytest.raises(GalleryBusyError, match=f"being written to by process {writer.pid}; wait"),
            folder.writing(),
        ):
            pass
    finally:
        writer.kill()
        writer.join()
    with folder.writing():
        pass


def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    metrics, data = tmp_path / "metrics", tmp_path / "records.lance" / "data"
    for path in (metrics / "1-cosine", metrics / "2-adapted", metrics / ".3-adapted.x7k.new", metrics / ".mine", data):
        path.mkdir(parents=True)
    (metrics / "1-cosine.json").write_text("{}")
    (metrics / ".current.7.part").write_text("")
    (tmp_path / ".embedder.k_2.new").mkdir()
    (tmp_path / ".embedder.old").mkdir()
    (data / ".tmpAbC").write_text("")
    (data / "whole.lance").write_text("")
    with folder.writing():
        pass
    assert {path.name for path in metrics.iterdir()} == {"1-cosine", "1-cosine.json", ".mine"}
    assert {path.name for path in data.iterdir()} == {"whole.lance"}
    assert (tmp_path / ".embedder.old").exists()
    assert not (tmp_path / ".embedder.k_2.new").exists()
