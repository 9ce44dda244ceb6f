"""Endless textures: cloudy, grainy and wavy, the same at the same point however the window is cut.

Each is one square tile of noise with a given spectrum, made once and repeated over the ground; the period is long
against a chip, and two textures of different periods hide it in a scene.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookdown.lab.synthetic.rendering import Field, GroundView, average_down

__all__ = ["Texture", "texture"]

Texture = Literal["cloud", "grain", "waves"]
_SIDE = 512
_METRES = {"cloud": 1.9, "grain": 0.45, "waves": 0.8}  # a texel


def texture(kind: Texture, view: GroundView, *, east: float = 0.0, north: float = 0.0, scale: float = 1.0) -> Field:
    """Return a texture over a window, mean 0 and spread 1 over the whole tile; `scale` stretches its grain."""
    metres = _METRES[kind] * scale
    level = max(0, int(np.log2(max(view.step / metres, 1))))  # a coarse view needs no fine texels
    metres *= 2**level
    tile = _tile(kind, level)
    left, top = (view.west + east) / metres, -(view.north + north) / metres
    across, down = view.columns * view.step / metres, view.rows * view.step / metres
    margin = int(np.ceil(2 * max(1.0, view.step / metres))) + 1  # what the filter reaches beyond the window
    first_column, first_row = int(np.floor(left)) - margin, int(np.floor(top)) - margin
    columns = np.arange(first_column, first_column + int(np.ceil(across)) + 2 * margin + 2) % len(tile)
    rows = np.arange(first_row, first_row + int(np.ceil(down)) + 2 * margin + 2) % len(tile)
    patch = Image.fromarray(tile[rows[:, None], columns])
    window = (left - first_column, top - first_row, left - first_column + across, top - first_row + down)
    return np.asarray(patch.resize((view.columns, view.rows), Image.Resampling.BILINEAR, box=window))


@lru_cache
def _tile(kind: Texture, level: int) -> Field:
    """Return the tile, each level averaged down by two from the one before."""
    if level:
        finer = _tile(kind, level - 1)
        return average_down(finer, 2) if len(finer) > 8 else finer
    frequency_x = np.fft.fftfreq(_SIDE)[None, :]
    frequency_y = np.fft.fftfreq(_SIDE)[:, None]
    frequency = np.hypot(frequency_x, frequency_y)
    frequency[0, 0] = 1
    if kind == "cloud":
        weight = frequency**-1.6
    elif kind == "grain":
        weight = np.where(frequency > 0.02, frequency**-0.7, 0)
    else:  # crests about fourteen metres apart, most of them across the wind, and ripples
        along = np.abs(frequency_x * 0.8 + frequency_y * 0.6) / frequency
        weight = np.exp(-((np.log(frequency * 14 / 0.8) / 0.5) ** 2)) * along**3 + 0.12 * frequency**0.2
    weight[0, 0] = 0
    noise = np.random.default_rng(list(_METRES).index(kind)).standard_normal((_SIDE, _SIDE))
    tile: NDArray[np.float64] = np.fft.ifft2(np.fft.fft2(noise) * weight).real
    standard: Field = ((tile - tile.mean()) / tile.std()).astype(np.float32)
    return standard
