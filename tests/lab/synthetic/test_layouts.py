"""Scenes before they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from lookdown.lab.synthetic.kinds import KINDS
from lookdown.lab.synthetic.layouts import lay_out


@pytest.mark.parametrize("ground", ["harbour", "apron", "forest", "desert"])
@pytest.mark.parametrize("half", [256.0, 700.0, 2048.0])
def test_objects_stand_apart_and_inside(ground: str, half: float) -> None:
    layout = lay_out(ground, half, np.random.default_rng(0))
    if half > 500:
        assert len(layout.objects) > 8
    shapes = [shapely.Polygon(item.outline) for item in layout.objects]
    inside = shapely.box(-half, -half, half, half)
    for number, shape in enumerate(shapes):
        assert inside.covers(shape), layout.objects[number]
        for other in shapes[:number]:
            assert shape.intersection(other).area < 0.02 * min(shape.area, other.area)
    family = "ships" if ground == "harbour" else "aircraft"
    assert {KINDS[item.kind].family for item in layout.objects} <= {family}
