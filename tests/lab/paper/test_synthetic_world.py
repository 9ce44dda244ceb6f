"""The synthetic world is neither trivial nor noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookdown.lab.paper import synthetic_world
from lookdown.lab.synthetic.kinds import ONE_FEATURE
from lookdown.lab.synthetic.world import World, draw_world


@pytest.mark.parametrize(("first", "second", "feature"), ONE_FEATURE)
def test_an_oracle_reads_the_one_feature_in_which_two_kinds_differ(first: str, second: str, feature: str) -> None:
    assert synthetic_world.read_feature(first, second, chips=160) >= 0.85, feature


def test_the_oracle_has_nothing_to_read_between_two_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_world, "_differs", lambda *_: np.ones(synthetic_world._GRID, bool))
    assert 0.3 < synthetic_world.read_feature("tanker", "tanker", chips=120) < 0.7


def test_raw_pixels_find_little_but_more_than_chance(tmp_path: Path) -> None:
    found = synthetic_world.raw_pixels(draw_world(World(chips=20, size=32), tmp_path / "world").manifest)
    assert 1 / 36 < found.mean_average_precision < 0.30


def test_the_sheet_is_drawn_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["synthetic_world", "--sheet", str(tmp_path / "sheet.jpg")])
    synthetic_world.main()
    with Image.open(tmp_path / "sheet.jpg") as sheet:
        assert sheet.size[0] > 1000
