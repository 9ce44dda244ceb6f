"""Scenes without boxes: overlapping windows over everything that is not empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.imagery import SUFFIXES, SceneReader, open_scene
from lookdown.chips.sources import Crop, Scene, SourceContent, box_polygon, files_below
from lookdown.errors import ImageError, InputError, SourceError

__all__ = ["read"]

Array = NDArray[np.float64]


def read(
    root: Path,
    *,
    size: int | Sequence[int] = 64,
    stride: int | Sequence[int] | None = None,
    empty: float = 0.9,
    flat: float = 2.0,
) -> SourceContent:
    """Cover each image with windows on a grid; the last window of a row or column ends at the edge of the image.

    size: side of a window in pixels; several sizes cover the image several times. An image smaller than a window is
        one window.
    stride: pixels from one window to the next, for all sizes or one for each; half the size by default.
    empty: leave out windows with a larger share of nodata.
    flat: leave out windows where the 8-bit values of every band have a smaller standard deviation, as on open sea.
    """
    sizes = [size] if isinstance(size, int) else list(size)
    steps = [max(1, side // 2) for side in sizes] if stride is None else stride
    strides = [steps] if isinstance(steps, int) else list(steps)
    strides = strides * len(sizes) if len(strides) == 1 else strides
    _check(sizes, strides, empty, flat)
    content = SourceContent()
    paths = files_below(root, SUFFIXES)
    if not paths:
        raise SourceError(f"{root} holds no image; give an image or a folder with {', '.join(sorted(SUFFIXES))} files")
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        try:
            with open_scene(path) as scene:
                crops: dict[str, Crop] = {}  # an image smaller than two sizes is the same window twice
                pairs = zip(sizes, strides, strict=True)
                dropped = [_cover(name, scene, side, step, empty, flat, crops) for side, step in pairs]
                content.scenes[name] = Scene(name=name, path=path, gsd=scene.gsd)
        except ImageError as error:
            content.skip(name, str(error))
            continue
        content.crops.extend(crops.values())
        for reason in filter(None, dict.fromkeys(dropped)):
            content.skip(name, reason)
    return content


def _check(sizes: list[int], strides: list[int], empty: float, flat: float) -> None:
    if len(strides) != len(sizes):
        raise InputError(f"give one stride for all sizes or one for each, got {len(strides)} for {len(sizes)}")
    if min(*sizes, *strides) < 1:
        raise InputError(f"size and stride must be at least 1 pixel, got {sizes} and {strides}")
    if not 0 <= empty <= 1:
        raise InputError(f"empty is a share between 0 and 1, got {empty}")
    if not flat >= 0:
        raise InputError(f"flat is a standard deviation, 0 or more, got {flat}")


def _cover(
    name: str, scene: SceneReader, size: int, step: int, empty: float, flat: float, crops: dict[str, Crop]
) -> str:
    """Add the windows of one size to `crops`; return how many were left out, "" if none.

    One strip of the scene is in memory at a time.
    """
    dropped = {"without data": 0, "flat": 0}
    lefts, tops = _starts(scene.width, size, step), _starts(scene.height, size, step)
    rights = np.minimum(lefts + size, scene.width)
    for top in tops.tolist():
        bottom = min(top + size, scene.height)
        missing, deviation = _statistics(scene, top, bottom, lefts, rights)
        for left, right, share, spread in zip(lefts.tolist(), rights.tolist(), missing, deviation, strict=True):
            if share > empty:
                dropped["without data"] += 1
            elif spread < flat:
                dropped["flat"] += 1
            else:
                box = left, top, right, bottom
                key = f"{name}:{','.join(map(str, box))}"
                crops.setdefault(key, Crop(id=key, scene=name, polygon=box_polygon(*map(float, box)), exact=True))
    lost = sum(dropped.values())
    counts = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
    return f"{lost:,} of {len(lefts) * len(tops):,} windows left out: {counts}" if lost else ""


def _starts(length: int, size: int, stride: int) -> NDArray[np.int64]:
    last = max(length - size, 0)
    return np.append(np.arange(0, last, stride), last)


def _statistics(
    scene: SceneReader, top: int, bottom: int, lefts: NDArray[np.int64], rights: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Return each window's share of nodata and largest standard deviation of a band over its valid pixels.

    Columns are summed once; the sum over a window is the difference of two running sums, exact since they are integers.
    """
    strip = (0, top, scene.width, bottom)
    pixels, valid = scene.read(strip), scene.valid(strip)
    pixels = np.where(valid[..., None], pixels, np.uint8(0))

    def over_windows(columns: NDArray[np.int64]) -> Array:
        running: NDArray[np.int64] = np.concatenate([np.zeros_like(columns[:1]), columns.cumsum(axis=0)])
        return np.asarray(running[rights] - running[lefts], np.float64)

    count = over_windows(valid.sum(axis=0, dtype=np.int64))
    total = over_windows(pixels.sum(axis=0, dtype=np.int64))
    squares = over_windows(np.square(pixels, dtype=np.uint16).sum(axis=0, dtype=np.int64))
    at_least_one = np.maximum(count, 1)[:, None]
    variance = (squares / at_least_one - (total / at_least_one) ** 2).clip(0)
    return 1 - count / ((rights - lefts) * (bottom - top)), np.sqrt(variance).max(axis=1)
