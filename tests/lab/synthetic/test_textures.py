"""Textures are the same at the same point, however the window is cut."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.rendering import GroundView
from lookdown.lab.synthetic.textures import Texture, texture

KINDS: tuple[Texture, ...] = ("cloud", "grain", "waves")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 7.3])
def test_windows_meet_without_a_seam(kind: Texture, step: float) -> None:
    whole = texture(kind, GroundView(west=-31.7, north=12.3, columns=64, rows=64, step=step))
    right = texture(kind, GroundView(west=-31.7 + 40 * step, north=12.3 - 24 * step, columns=24, rows=40, step=step))
    np.testing.assert_allclose(whole[24:, 40:], right, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_texture_has_no_mean_and_unit_spread(kind: Texture) -> None:
    values = texture(kind, GroundView(west=0, north=0, columns=1200, rows=1200, step=0.8))
    assert abs(values.mean()) < 0.25
    assert 0.6 < values.std() < 1.2


def test_places_differ() -> None:
    view = GroundView(west=0, north=0, columns=32, rows=32, step=0.5)
    here, there = texture("grain", view), texture("grain", view, east=37.0)
    assert np.abs(np.corrcoef(here.ravel(), there.ravel())[0, 1]) < 0.3


def test_kinds_are_unrelated() -> None:
    view = GroundView(west=0, north=0, columns=200, rows=200, step=0.9)
    values = np.corrcoef([texture(kind, view).ravel() for kind in KINDS])
    assert np.abs(values - np.eye(3)).max() < 0.15
