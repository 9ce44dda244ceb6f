"""Pictures: the object is where the outline says, in every ground and under both sensors."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic import picture as pictures
from lookdown.lab.synthetic.grounds import GROUNDS
from lookdown.lab.synthetic.kinds import KINDS
from lookdown.lab.synthetic.locations import sample_locations
from lookdown.lab.synthetic.parts import box
from lookdown.lab.synthetic.picture import outline_of, take
from lookdown.lab.synthetic.sensors import FAR, NEAR

LOCATIONS = {location.ground: location for location in sample_locations(5, 0)}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("sensor", [NEAR, FAR], ids=lambda sensor: sensor.name)
def test_the_same_numbers_take_the_same_picture(ground: str, sensor: object) -> None:
    kind = next(kind for kind in KINDS.values() if ground in kind.grounds)
    first, again = (take(kind, LOCATIONS[ground], sensor, 48, np.random.default_rng(5)) for _ in range(2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(first.pixels, again.pixels)
    assert first.pixels.shape == (48, 48, 3)
    assert first.pixels.std() > 3
    other = take(kind, LOCATIONS[ground], sensor, 48, np.random.default_rng(6))  # type: ignore[arg-type]
    assert (first.pixels != other.pixels).mean() > 0.5


@pytest.mark.parametrize("name", ["crude tanker", "wide-body twinjet", "trawler", "light aircraft"])
def test_the_object_is_where_the_outline_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the object is green here. It must fill its turned box from side to side, and lie nowhere else."""
    kind = KINDS[name]
    green = type(kind)(
        kind.name, kind.family, kind.grounds, lambda rng: [part._replace(colour=(0, 1, 0)) for part in kind.draw(rng)]
    )
    monkeypatch.setattr(pictures, "_neighbour", lambda *_: [])
    for seed in range(8):
        location = LOCATIONS[kind.grounds[seed % len(kind.grounds)]]
        found = take(green, location, NEAR, 128, np.random.default_rng(seed))
        red, value, blue = found.pixels.astype(np.int64).transpose(2, 0, 1)
        rows, columns = np.nonzero(value > 1.7 * np.maximum(red, blue) + 20)
        assert found.outline is not None
        stern_right, bow_right, _, stern_left = found.view.pixels(found.outline)
        axes = np.stack([bow_right - stern_right, stern_left - stern_right], axis=1)
        along, across = np.linalg.solve(axes, (np.stack([columns, rows], axis=1) + 0.5 - stern_right).T)
        slack = 1.8 / np.hypot(*axes)  # two pixels, as a share of length and of width
        for shares, spare in ((along, slack[0]), (across, slack[1])):
            assert abs(shares.min()) < 2 * spare
            assert abs(shares.max() - 1) < 2 * spare
        assert np.abs(across - 0.5)[along > 0.97].mean() < 0.35, "the bow, or the nose, is where +x is"


def test_a_picture_without_an_object_has_no_outline_and_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a background chip must show none of the objects")

    monkeypatch.setattr(pictures, "_neighbour", refuse)
    for ground, location in LOCATIONS.items():
        for seed in range(12):
            assert take(None, location, NEAR, 32, np.random.default_rng(seed)).outline is None, ground


def test_outlines_turn_with_their_objects() -> None:
    corners = outline_of([box(0, 0, 10, 4, 1, (0, 0, 0))], np.pi / 2, 100, 50)
    np.testing.assert_allclose(corners, [[102, 45], [102, 55], [98, 55], [98, 45]], atol=1e-9)
