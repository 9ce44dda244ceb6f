"""How hard the synthetic world is: neither trivial nor noise.

`python -m lookdown.lab.paper.synthetic_world` prints the tables of docs/synthetic.md; with `--sheet FILE` it draws
the contact sheet instead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import binary_dilation
from sklearn.linear_model import RidgeClassifier

from lookdown.chips.manifest import Manifest
from lookdown.chips.pixels import read_chip
from lookdown.evaluation import Evaluation, evaluate
from lookdown.lab.synthetic.kinds import KINDS, ONE_FEATURE, Kind
from lookdown.lab.synthetic.kinds_sheet import contact_sheet
from lookdown.lab.synthetic.locations import sample_locations
from lookdown.lab.synthetic.parts import SolidPart, bounds
from lookdown.lab.synthetic.picture import Picture, take
from lookdown.lab.synthetic.sensors import FAR, NEAR, Sensor
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.metrics import Cosine

__all__ = ["raw_pixels", "read_feature"]

Array = NDArray[np.float64]
_GRID = (48, 96)  # an object turned to lie along x: rows, columns


def raw_pixels(manifest: Manifest, *, side: int = 32) -> Evaluation:
    """Search by the cosine of the pixels themselves, averaged down and less their mean colour."""
    pixels = {}
    for role in ("query", "gallery"):
        chips = [Image.fromarray(read_chip(path)) for path in manifest.with_role(role).paths]
        pixels[role] = np.stack([np.asarray(chip.resize((side, side), Image.Resampling.BOX)).ravel() for chip in chips])
    mean = np.concatenate(list(pixels.values())).mean(axis=0)
    queries, gallery = manifest.with_role("query"), manifest.with_role("gallery")
    asked, items = pixels["query"] - mean, pixels["gallery"] - mean
    return evaluate(
        Cosine().fit(items), asked, queries.labels, items, gallery.labels, gallery.background, groups=queries.groups
    )


def read_feature(
    first: str, second: str, *, sensor: Sensor = NEAR, size: int = 96, chips: int = 200, seed: int = 0
) -> float:
    """Return how often an oracle tells two kinds apart, half of the chips to learn from and half to be told apart.

    It knows where the object is and how it lies, turns it to lie along x, looks only where the two kinds are drawn
    differently and at the shadow beside, and decides by a straight line in these pixels.
    """
    kinds = KINDS[first], KINDS[second]
    where = binary_dilation(_differs(*kinds), iterations=3)
    pictures = [
        _upright(_picture(kinds[number % 2], sensor, size, np.random.default_rng([seed, number])))
        for number in range(chips)
    ]
    return _told_apart(np.stack([picture[where] for picture in pictures]), np.arange(chips) % 2)


def _picture(kind: Kind, sensor: Sensor, size: int, rng: np.random.Generator) -> Picture:
    locations = [location for location in sample_locations(40, 0) if location.ground in kind.grounds]
    at = rng.uniform(-4000, 4000, 2)
    return take(kind, locations[int(rng.integers(len(locations)))], sensor, size, rng, at=(float(at[0]), float(at[1])))


def _upright(picture: Picture) -> Array:
    """Return the object turned to lie along x, bow to the right, in shades of grey."""
    assert picture.outline is not None
    stern_right, bow_right, _, stern_left = picture.view.pixels(picture.outline)
    along, across = (bow_right - stern_right) / _GRID[1], (stern_left - stern_right) / _GRID[0]
    turned = Image.fromarray(picture.pixels).convert("L").transform(
        _GRID[::-1],
        Image.Transform.AFFINE,
        (along[0], across[0], stern_right[0], along[1], across[1], stern_right[1]),
        Image.Resampling.BILINEAR,
    )  # fmt: skip
    return np.asarray(turned, np.float64)


def _differs(first: Kind, second: Kind) -> NDArray[np.bool_]:
    """Return where the drawings of two kinds differ, on the grid of a turned object."""
    drawn = [_heights(kind.draw(np.random.default_rng(0))) for kind in (first, second)]
    return np.abs(drawn[0] - drawn[1]) > 0.3


def _heights(parts: list[SolidPart]) -> Array:
    """Return the heights of parts on the grid."""
    left, right, low, high = bounds(parts)
    canvas = Image.new("F", _GRID[::-1], 0)
    draw = ImageDraw.Draw(canvas)
    for part in parts:
        grid = (part.outline - (left, low)) / (right - left, high - low) * _GRID[::-1]
        draw.polygon(grid.ravel().tolist(), fill=part.top)
    return np.asarray(canvas, np.float64)


def _told_apart(pixels: Array, labels: NDArray[np.int64]) -> float:
    """Return the share of the second half that is told apart by what the first half shows."""
    half = len(labels) // 2
    pixels = (pixels - pixels.mean(axis=1, keepdims=True)) / (pixels.std(axis=1, keepdims=True) + 1)
    line = RidgeClassifier(alpha=30).fit(pixels[:half], labels[:half])
    return float(line.score(pixels[half:], labels[half:]))


def main() -> None:
    """Print the tables, or draw the sheet."""
    if sys.argv[1:2] == ["--sheet"]:
        contact_sheet().save(sys.argv[2], quality=90)
        return
    print("| kinds | differ in | told apart, near | far |\n|---|---|---|---|")
    for first, second, feature in ONE_FEATURE:
        near, far = (read_feature(first, second, sensor=sensor, chips=600) for sensor in (NEAR, FAR))
        print(f"| {first}, {second} | {feature} | {100 * near:.0f} % | {100 * far:.0f} % |", flush=True)
    with TemporaryDirectory() as folder:
        manifest = draw_world(World(), Path(folder) / "world").manifest
        print(f"\nraw pixels, cosine: {raw_pixels(manifest)}")


if __name__ == "__main__":
    main()
