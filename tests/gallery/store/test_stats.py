"""What a gallery holds, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.gallery.galleries import vector_gallery

from lookdown.gallery import Gallery
from lookdown.gallery.store.stats import GalleryStats, gallery_stats


def test_an_empty_gallery_counts_nothing(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=5)
    found = gallery.stats()
    assert found == GalleryStats(
        chips=0,
        labelled=0,
        marked=0,
        background=0,
        classes=0,
        scenes=0,
        placed=0,
        first_time=None,
        last_time=None,
        sensors=(),
        dimension=5,
        embedder=None,
        metric="1-cosine",
        table=str(tmp_path / "g" / "records.lance"),
        bytes_on_disk=found.bytes_on_disk,
    )


def test_every_number_is_that_of_a_loop_over_the_rows(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 200)
    found = gallery.stats()
    assert found.chips == 200
    assert found.labelled == sum(row["label"] is not None for row in rows)
    assert found.classes == len({row["label"] for row in rows} - {None})
    assert found.scenes == len({row["scene"] for row in rows})
    assert found.placed == sum(row["footprint"] is not None for row in rows) < 200
    times = sorted(row["time"] for row in rows if row["time"] is not None)
    assert (str(found.first_time)[:19], str(found.last_time)[:19]) == (times[0][:19], times[-1][:19])
    assert set(found.sensors) == {row["sensor"] for row in rows} - {None}
    assert (found.marked, found.background, found.dimension, found.metric) == (0, 0, 8, "1-trained")


def test_marks_count_until_they_are_taken_away(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 30)
    before = gallery.stats()
    unlabelled = [row["id"] for row in rows if row["label"] is None]
    gallery.label(unlabelled[:1], ["new kind"], background=[rows[0]["id"]])
    after = gallery.stats()
    assert (after.marked, after.background) == (2, 1)
    assert after.labelled == before.labelled  # one has a label now, and one has lost its own
    assert after.classes == before.classes + 1
    gallery.label([unlabelled[0], rows[0]["id"]], [None, None])
    assert (gallery.stats().marked, gallery.stats().background) == (0, 0)


def test_what_was_removed_counts_no_more(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 40)
    scene = rows[0]["scene"]
    gallery.remove([row["id"] for row in rows if row["scene"] == scene])
    found = gallery.stats()
    assert found.chips == sum(row["scene"] != scene for row in rows)
    assert found.scenes == len({row["scene"] for row in rows}) - 1


def test_bytes_are_those_of_all_files_in_the_folder(tmp_path: Path) -> None:
    gallery, _, _ = vector_gallery(tmp_path / "g", 40)
    before = gallery.stats().bytes_on_disk
    assert before > 40 * 8 * 4  # the vectors alone
    (tmp_path / "g" / "index").mkdir(exist_ok=True)
    (tmp_path / "g" / "index" / "more").write_bytes(bytes(1_000))
    assert gallery.stats().bytes_on_disk == before + 1_000


def test_it_counts_the_moment_that_it_is_given(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 20)
    before = gallery.snapshot
    gallery.add_embeddings([rows[0] | {"id": "one more"}], np.ones((1, 8)))
    assert gallery_stats(before, tmp_path / "g", embedder="abc", metric="m", table="t").chips == 20
    told = gallery_stats(gallery.snapshot, tmp_path / "g", embedder="abc", metric="m", table="t")
    assert (told.chips, told.embedder, told.metric) == (21, "abc", "m")
