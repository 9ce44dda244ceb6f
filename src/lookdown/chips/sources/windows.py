"""Scenes without boxes: overlapping windows over everything that is not empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.annotations import Annotated, Marked, Scene, Skipped
from lookdown.chips.imagery import SUFFIXES, SceneReader, open_scene
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
) -> Annotated:
    """Cover each image with windows of `size` pixels, one every `stride` (half the size), the last flush with the edge.

    Several sizes cover it several times, each with its own stride if several are given. Left out are windows with a
    share of nodata above `empty`, and flat ones: open sea, where the 8-bit values of no band have a standard deviation
    of `flat`. An image smaller than a window is one window.
    """
    sizes = [size] if isinstance(size, int) else list(size)
    strides = [max(1, side // 2) for side in sizes] if stride is None else _one_each(stride, len(sizes))
    found = Annotated()
    for side, step in zip(sizes, strides, strict=True):
        _check(side, step, empty, flat)
        covered = _cover(Path(root), side, step, empty, flat)
        known = {marked.id for marked in found.marked}  # an image smaller than two sizes is the same window twice
        found.scenes.update(covered.scenes)
        found.marked.extend(marked for marked in covered.marked if marked.id not in known)
        found.skipped.extend(item for item in covered.skipped if item not in found.skipped)
    return found


def _one_each(stride: int | Sequence[int], sizes: int) -> list[int]:
    strides = [stride] if isinstance(stride, int) else list(stride)
    if len(strides) not in (1, sizes):
        raise InputError(f"give one stride for all sizes or one for each, got {len(strides)} for {sizes}")
    return strides * sizes if len(strides) == 1 else strides


def _cover(root: Path, size: int, step: int, empty: float, flat: float) -> Annotated:
    found = Annotated()
    for path in _images(root):
        name = path.name if path == root else path.relative_to(root).as_posix()
        kept: list[Marked] = []
        dropped = {"without data": 0, "flat": 0}
        try:
            with open_scene(path) as scene:
                for box, verdict in _windows(scene, size, step, empty, flat):
                    if verdict:
                        dropped[verdict] += 1
                    else:
                        kept.append(_marked(name, box))
                gsd = scene.gsd
        except ImageError as error:
            found.skipped.append(Skipped(name, str(error)))
            continue
        found.scenes[name] = Scene(name=name, path=path, gsd=gsd)
        found.marked.extend(kept)
        if any(dropped.values()):
            counts = ", ".join(f"{count:,} {verdict}" for verdict, count in dropped.items())
            total = len(kept) + sum(dropped.values())
            found.skipped.append(Skipped(name, f"{sum(dropped.values()):,} of {total:,} windows left out: {counts}"))
    return found


def _check(size: int, stride: int, empty: float, flat: float) -> None:
    if size < 1 or stride < 1:
        raise InputError(f"size and stride must be at least 1 pixel, got {size} and {stride}")
    if not 0 <= empty <= 1:
        raise InputError(f"empty is a share between 0 and 1, got {empty}")
    if not flat >= 0:
        raise InputError(f"flat is a standard deviation, 0 or more, got {flat}")


def _images(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not paths:
        raise SourceError(f"{root} holds no image; give an image or a folder with {', '.join(sorted(SUFFIXES))} files")
    return paths


def _windows(
    scene: SceneReader, size: int, stride: int, empty: float, flat: float
) -> Iterator[tuple[tuple[int, int, int, int], str]]:
    """Yield every window and why it is left out (nothing if it is kept); one strip of the scene is in memory."""
    lefts = _starts(scene.width, size, stride)
    for top in _starts(scene.height, size, stride):
        bottom = min(top + size, scene.height)
        rights = np.minimum(lefts + size, scene.width)
        missing, deviation = _statistics(scene, top, bottom, lefts, rights)
        for left, right, share, spread in zip(lefts, rights, missing, deviation, strict=True):
            verdict = "without data" if share > empty else "flat" if spread < flat else ""
            yield (int(left), int(top), int(right), int(bottom)), verdict


def _starts(length: int, size: int, stride: int) -> NDArray[np.int64]:
    last = max(length - size, 0)
    return np.append(np.arange(0, last, stride), last)


def _statistics(
    scene: SceneReader, top: int, bottom: int, lefts: NDArray[np.int64], rights: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Return each window's share of nodata and largest standard deviation of a band over its valid pixels.

    Sums over columns are taken once, and a window is the difference of two running sums: exact, they are integers.
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
    some = np.maximum(count, 1)[:, None]
    variance = (squares / some - (total / some) ** 2).clip(0)
    return 1 - count / ((rights - lefts) * (bottom - top)), np.sqrt(variance).max(axis=1)


def _marked(name: str, box: tuple[int, int, int, int]) -> Marked:
    x0, y0, x1, y1 = box
    corners = ((float(x0), float(y0)), (float(x1), float(y0)), (float(x1), float(y1)), (float(x0), float(y1)))
    return Marked(id=f"{name}:{x0},{y0},{x1},{y1}", scene=name, polygon=corners, exact=True)
