"""FilterColumns of a gallery: text with repeats is kept once, and found as it is."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.gallery.galleries import vector_gallery

from lookdown.gallery import Gallery
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns, GalleryStats, gallery_stats

TEXTS = ["tug", None, "", "tug", "it's", " tug", None, "Tug", "' OR 1=1 --"]


def test_each_text_is_kept_once_and_each_row_finds_its_own() -> None:
    codes = CategoricalColumn.from_texts(TEXTS)
    assert codes.values == ("tug", "", "it's", " tug", "Tug", "' OR 1=1 --")
    assert [codes[row] for row in range(len(TEXTS))] == TEXTS
    assert codes.codes.dtype == np.int32


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ([], []),
        (["tug"], [0, 3]),
        (("", "it's", "nowhere"), [2, 4]),
        ({"' OR 1=1 --"}, [8]),
        (["None", "%", "TUG"], []),
    ],
)
def test_rows_among_some_texts(wanted: list[str], rows: list[int]) -> None:
    found = CategoricalColumn.from_texts(TEXTS).is_in(wanted)
    assert found.dtype == np.bool_
    assert np.flatnonzero(found).tolist() == rows


def test_among_is_membership_whatever_the_column() -> None:
    random.seed(0)
    for _ in range(200):
        texts = random.choices(["a", "b", "c", "", None], k=random.randrange(12))
        wanted = random.sample(["a", "b", "c", "", "d"], k=random.randrange(4))
        assert CategoricalColumn.from_texts(texts).is_in(wanted).tolist() == [
            text is not None and text in wanted for text in texts
        ]


def test_a_column_without_any_text_and_one_without_rows() -> None:
    assert CategoricalColumn.from_texts([None, None]).is_in(["a"]).tolist() == [False, False]
    assert CategoricalColumn.from_texts([]).is_in(["a"]).tolist() == []


def test_columns_are_as_long_as_the_table() -> None:
    codes = CategoricalColumn.from_texts(TEXTS)
    rows = len(TEXTS)
    columns = FilterColumns(
        labels=codes,
        scenes=codes,
        sensors=codes,
        timestamps=CategoricalColumn.from_texts([None] * rows),
        background=np.zeros(rows, dtype=np.bool_),
        bounds=np.full((rows, 4), np.nan),
        footprints=lambda wanted: [None] * len(wanted),
    )
    assert len(columns) == rows


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
