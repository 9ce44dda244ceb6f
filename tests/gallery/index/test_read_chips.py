"""Chips come from their groups in order, letterboxed and with thumbnails; those that cannot be read are forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.chips.pixels import letterbox
from lookdown.errors import ImageError
from lookdown.gallery.index import writer
from lookdown.gallery.index.sources import ChipGroup
from lookdown.gallery.index.writer import ChipRegistry, read_chips
from lookdown.gallery.store.table import ChipTable, TableLocation

SIZE = 16


def chip(position: int) -> NDArray[np.uint8]:
    return np.random.default_rng(position).integers(0, 256, (9, 9 + position % 5, 3), dtype=np.uint8)


def row(name: str) -> dict[str, Any]:
    return {"id": name, "source": f"/archive/{name}", "polygon": None, "footprint": None}


@dataclass(frozen=True, slots=True)
class Chips(ChipGroup):
    """Chips some of which are broken, or have more bands than the network takes."""

    def pixels(
        self, wanted: Sequence[int], side: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.uint8] | ImageError]]:
        assert side == SIZE
        for position in wanted:
            if position % 11 == 5:
                yield position, ImageError(f"{position} is broken")
            else:
                yield position, np.zeros((4, 4, 5), np.uint8) if position % 11 == 6 else chip(position)


def chips(count: int, *, first: int = 0, of_one_scene: bool = False) -> Chips:
    return Chips([row(f"{first + position}.png") for position in range(count)], of_one_scene=of_one_scene)


@pytest.fixture
def registry(tmp_path: Path) -> ChipRegistry:
    return ChipRegistry(ChipTable.create(TableLocation(tmp_path / "g"), 2))


@pytest.mark.parametrize("of_one_scene", [False, True])
def test_chips_come_in_their_order_with_their_thumbnails(
    registry: ChipRegistry, monkeypatch: pytest.MonkeyPatch, of_one_scene: bool
) -> None:
    monkeypatch.setattr(writer, "_BATCH_CHIPS", 40)
    groups = [chips(60, of_one_scene=of_one_scene), chips(0), chips(30, first=60, of_one_scene=of_one_scene)]
    batches = [*read_chips(groups, registry, bands=3, size=SIZE)]
    good = [position for count in (60, 30) for position in range(count) if position % 11 not in (5, 6)]
    names = [f"{position}.png" for position in range(60) if position % 11 not in (5, 6)]
    names += [f"{60 + position}.png" for position in range(30) if position % 11 not in (5, 6)]
    assert [row["id"] for batch in batches for row in batch.rows] == names
    squares = np.concatenate([batch.squares for batch in batches])
    np.testing.assert_array_equal(squares, [letterbox(chip(i), SIZE).transpose(2, 0, 1) for i in good])
    assert [len(batch.rows) for batch in batches] == [40, len(good) - 40]
    assert all(batch.squares.flags.c_contiguous for batch in batches)
    assert all(row["thumbnail"].startswith(b"\xff\xd8") for batch in batches for row in batch.rows)
    assert sum(batch.done - len(batch.rows) - batch.present for batch in batches) == 90 - len(good)
    assert sum(len(batch.unreadable) for batch in batches) == 90 - len(good)
    assert batches[-1].total == 90
    reasons = {name: reason for batch in batches for name, reason in batch.skipped.items()}
    assert reasons["/archive/5.png"] == "5 is broken"
    assert "6.png has 5 bands" in reasons["/archive/6.png"]


def test_what_cannot_be_read_is_forgotten_and_what_is_read_is_not(registry: ChipRegistry) -> None:
    (batch,) = read_chips([chips(8)], registry, bands=3, size=SIZE)
    assert [row["id"] for row in batch.unreadable] == ["5.png", "6.png"]
    (again,) = read_chips([chips(8)], registry, bands=3, size=SIZE)
    assert (again.present, again.done - len(again.rows) - again.present) == (6, 2)


def test_without_a_registry_every_chip_is_read() -> None:
    for _ in range(2):
        (batch,) = read_chips([chips(4)], None, bands=3, size=SIZE)
        assert len(batch.rows) == 4


def test_a_thumbnail_that_a_group_has_is_kept(registry: ChipRegistry) -> None:
    group = Chips([row("1.png") | {"thumbnail": b"own"}, row("2.png")])
    (batch,) = read_chips([group], registry, bands=3, size=SIZE)
    assert batch.rows[0]["thumbnail"] == b"own"
    assert batch.rows[1]["thumbnail"] != b"own"


def test_an_unforeseen_error_ends_the_reading(registry: ChipRegistry) -> None:
    @dataclass(frozen=True, slots=True)
    class Bad(ChipGroup):
        def pixels(
            self, wanted: Sequence[int], side: int | None = None
        ) -> Iterator[tuple[int, NDArray[np.uint8] | ImageError]]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(read_chips([Bad([row("1.png")])], registry, bands=3, size=SIZE))
