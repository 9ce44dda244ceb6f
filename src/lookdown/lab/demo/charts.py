"""Pictures of the demo's page as SVG: no script, no font and no library is needed to look at them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from PIL import Image

from lookdown.lab.demo.archive import SceneSearch
from lookdown.lab.paper.figure_1 import PairScores

__all__ = ["draw_pairs", "draw_scene", "jpeg_url"]

_WIDE, _HIGH, _FOOT = 520, 220, 34  # pixels of a chart, and what of it is below the axis
_BINS = 60
_SIDE = 620  # pixels of a scene on the page


def draw_pairs(scores: PairScores) -> str:
    """Draw the distributions of same and of different pairs, each with area one."""
    low = min(float(np.quantile(scores.different, 0.005)), float(scores.same.min()))
    high = float(max(scores.same.max(), scores.different.max()))
    edges = np.linspace(low, high, _BINS + 1)
    shares = [np.histogram(values, edges, density=True)[0] for values in (scores.different, scores.same)]
    top = 1.05 * max(float(share.max()) for share in shares)
    areas = "".join(
        f'<path class="{name}" d="{_steps(share / top)}"/>'
        for name, share in zip(("different", "same"), shares, strict=True)
    )
    cut = _WIDE * (scores.best_threshold - low) / (high - low)
    ground = _HIGH - _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(scores.name)}: scores of same '
        f'pairs around {np.median(scores.same):.2g}, of different pairs around {np.median(scores.different):.2g}">'
        f'{areas}<line class="axis" x1="0" y1="{ground}" x2="{_WIDE}" y2="{ground}"/>'
        f'<line class="cut" x1="{cut:.1f}" y1="0" x2="{cut:.1f}" y2="{ground}"/>'
        f'<text x="0" y="{ground + 16}">{low:.3g}</text>'
        f'<text x="{_WIDE}" y="{ground + 16}" text-anchor="end">{high:.3g}</text>'
        f'<text x="{_WIDE / 2}" y="{ground + 16}" text-anchor="middle">{escape(scores.axis)}, more alike →</text></svg>'
    )


def draw_scene(search: SceneSearch) -> str:
    """Draw a scene from above with the windows that were found, their rank, and the objects that were not."""
    with rasterio.open(search.scene) as source:
        size = source.width
        pixels = source.read(out_shape=(3, _SIDE, _SIDE), resampling=rasterio.enums.Resampling.average)
        west, south, east, north = rasterio.warp.transform_bounds(source.crs, "EPSG:4326", *source.bounds)
        metres = source.width * abs(source.transform.a)
    scale = _SIDE / size
    shapes = [f'<polygon class="missed" points="{_points(one, scale)}"/>' for one in search.missed]
    for rank, (hit, right) in enumerate(zip(search.hits, search.right, strict=True), start=1):
        window = shapely.from_wkt(hit.polygon)
        x, y = scale * window.bounds[0], scale * window.bounds[1]
        kind = "right" if right else "wrong"
        shapes.append(f'<polygon class="{kind}" points="{_points(window, scale)}"/>')
        shapes.append(f'<text class="rank" x="{x + 3:.0f}" y="{y + 13:.0f}">{rank}</text>')
    bar = _SIDE * 200 / metres
    corners = f"{north:.4f}° N {west:.4f}° E", f"{south:.4f}° N {east:.4f}° E"
    return (
        f'<svg class="scene" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{escape(search.scene.stem)} from '
        f'above: {sum(search.right)} of {len(search.hits)} hits are right">'
        f'<image href="{jpeg_url(pixels.transpose(1, 2, 0))}" width="{_SIDE}" '
        f'height="{_SIDE}"/>{"".join(shapes)}'
        f'<line class="bar" x1="12" y1="{_SIDE - 12}" x2="{12 + bar:.1f}" y2="{_SIDE - 12}"/>'
        f'<text class="place" x="12" y="{_SIDE - 18}">200 m</text>'
        f'<text class="place" x="8" y="16">{corners[0]}</text>'
        f'<text class="place" x="{_SIDE - 8}" y="{_SIDE - 8}" text-anchor="end">{corners[1]}</text></svg>'
    )


def jpeg_url(picture: NDArray[np.uint8] | Path | bytes) -> str:
    """Return a picture as an address that holds it."""
    if isinstance(picture, np.ndarray):
        content = io.BytesIO()
        Image.fromarray(picture).save(content, "JPEG", quality=85)
        picture = content.getvalue()
    elif isinstance(picture, Path):
        with Image.open(picture) as image:
            return jpeg_url(np.asarray(image.convert("RGB")))
    return f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"


def _steps(heights: NDArray[np.float64]) -> str:
    """Return the outline of a histogram whose heights lie between 0 and 1."""
    ground, width = _HIGH - _FOOT, _WIDE / len(heights)
    points = [f"M0 {ground}"]
    for index, height in enumerate(heights):
        y = ground * (1 - height)
        points += [f"L{index * width:.1f} {y:.1f}", f"L{(index + 1) * width:.1f} {y:.1f}"]
    return "".join([*points, f"L{_WIDE} {ground}Z"])


def _points(polygon: shapely.Polygon, scale: float) -> str:
    corners: Sequence[tuple[float, float]] = list(polygon.exterior.coords)[:-1]
    return " ".join(f"{scale * x:.1f},{scale * y:.1f}" for x, y in corners)
