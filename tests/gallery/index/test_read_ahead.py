"""Chips are read by several threads and ahead of the network, and come in the order they have."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.chips.reading import letterbox
from lookdown.errors import ImageError
from lookdown.gallery.index import read_ahead
from lookdown.gallery.index.intake import Part
from lookdown.gallery.index.known import Known
from lookdown.gallery.index.read_ahead import ahead, batches
from lookdown.gallery.store.table import ChipTable

SIZE = 16


def chip(place: int) -> NDArray[np.uint8]:
    return np.random.default_rng(place).integers(0, 256, (9, 9 + place % 5, 3), dtype=np.uint8)


def row(name: str) -> dict[str, Any]:
    return {"id": name, "source": f"/archive/{name}", "polygon": None, "footprint": None}


@dataclass(frozen=True, slots=True)
class Slow(Part):
    """Chips some of which take their time, and some of which are broken."""

    read: list[int] = field(default_factory=list)  # in the order in which they were asked for

    def pixels(
        self, wanted: Sequence[int], side: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.uint8] | ImageError]]:
        assert side == SIZE
        for place in wanted:
            self.read.append(place)
            time.sleep(0.002 if place % 7 == 0 else 0)
            if place % 11 == 5:
                yield place, ImageError(f"{place} is broken")
            elif place % 11 == 6:
                yield place, np.zeros((4, 4, 5), np.uint8)  # more bands than the network takes
            else:
                yield place, chip(place)


@pytest.fixture
def known(tmp_path: Path) -> Known:
    return Known(ChipTable.create(tmp_path / "g", 2))


def slow(count: int, *, first: int = 0, of_one_scene: bool = False) -> Slow:
    return Slow([row(f"{first + place}.png") for place in range(count)], of_one_scene=of_one_scene)


@pytest.mark.parametrize("of_one_scene", [False, True])
@pytest.mark.parametrize("readers", [1, 3])
def test_chips_come_in_their_order_however_many_read(
    known: Known, monkeypatch: pytest.MonkeyPatch, readers: int, of_one_scene: bool
) -> None:
    monkeypatch.setattr(read_ahead, "_READERS", readers)
    monkeypatch.setattr(read_ahead, "_STEP", 40)
    parts = [slow(60, of_one_scene=of_one_scene), slow(0), slow(30, first=60, of_one_scene=of_one_scene)]
    found = [*batches(parts, known, size=SIZE, bands=3)]
    good = [place for count in (60, 30) for place in range(count) if place % 11 not in (5, 6)]
    names = [f"{place}.png" for place in range(60) if place % 11 not in (5, 6)]
    names += [f"{60 + place}.png" for place in range(30) if place % 11 not in (5, 6)]
    assert [row["id"] for batch in found for row in batch.rows] == names
    squares = np.concatenate([batch.squares for batch in found])
    np.testing.assert_array_equal(squares, [letterbox(chip(place), SIZE).transpose(2, 0, 1) for place in good])
    assert [len(batch.rows) for batch in found] == [40, len(good) - 40]
    assert all(batch.squares.flags.c_contiguous for batch in found)
    assert all(row["thumbnail"].startswith(b"\xff\xd8") for batch in found for row in batch.rows)
    assert sum(batch.failed for batch in found) == 90 - len(good)
    assert found[-1].known == 90
    reasons = {name: reason for batch in found for name, reason in batch.skipped.items()}
    assert reasons["/archive/5.png"] == "5 is broken"
    assert "6.png: has 5 bands" in reasons["/archive/6.png"]


def test_several_read_at_once(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_READERS", 2)
    together = threading.Barrier(2)  # breaks, and so fails, unless two come

    @dataclass(frozen=True, slots=True)
    class Meeting(Part):
        def pixels(
            self, wanted: Sequence[int], side: int | None = None
        ) -> Iterator[tuple[int, NDArray[np.uint8] | ImageError]]:
            together.wait(30)
            yield from ((place, chip(place)) for place in wanted)

    (batch,) = batches([Meeting([row(f"{place}.png") for place in range(32)])], known, size=SIZE, bands=3)
    assert len(batch.rows) == 32


def test_windows_of_a_scene_are_made_as_they_are_asked_for(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_STEP", 5)
    scene = slow(1_000, of_one_scene=True)
    found = batches([scene], known, size=SIZE, bands=3)
    assert len(next(found).rows) == 5
    assert scene.read == [0, 1, 2, 3, 4]
    found.close()


def test_a_thumbnail_that_a_part_has_is_kept(known: Known) -> None:
    part = Slow([row("1.png") | {"thumbnail": b"own"}, row("2.png")])
    (batch,) = batches([part], known, size=SIZE, bands=3)
    assert batch.rows[0]["thumbnail"] == b"own"
    assert batch.rows[1]["thumbnail"] != b"own"


def test_an_error_that_nobody_has_foreseen_ends_it(known: Known) -> None:
    @dataclass(frozen=True, slots=True)
    class Bad(Part):
        def pixels(
            self, wanted: Sequence[int], side: int | None = None
        ) -> Iterator[tuple[int, NDArray[np.uint8] | ImageError]]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(batches([Bad([row("1.png")])], known, size=SIZE, bands=3))


def test_the_next_is_made_while_one_is_worked_on() -> None:
    begun = [threading.Event() for _ in range(4)]

    def made() -> Generator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    found = ahead(made())
    assert next(found) == 0
    assert begun[1].wait(30)  # nobody has asked for it
    assert [*found] == [1, 2, 3]


def test_an_error_comes_at_its_place_and_what_is_left_early_is_closed() -> None:
    closed = []

    def made() -> Generator[int]:
        try:
            yield 0
            yield 1
            raise ZeroDivisionError
        finally:
            closed.append(True)

    found = ahead(made())
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert closed == [True]
    early = ahead(made())
    next(early)
    early.close()
    assert closed == [True, True]
