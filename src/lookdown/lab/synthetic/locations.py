"""Locations of the world: around longitude and latitude zero, so that nobody takes them for real."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rasterio.warp import transform

from lookdown.lab.synthetic.grounds import GROUNDS, SURFACES, Location

__all__ = ["CRS", "MOST", "footprints", "sample_locations"]

CRS = "EPSG:32631"  # UTM, metres; its western edge is the meridian of Greenwich
_ORIGIN = (200_000.0, 20_000.0)
_APART_METRES = 12_000.0  # from one location to the next
MOST = 900  # locations, thirty by thirty; scenes lie to the north of them


def sample_locations(count: int, seed: int) -> list[Location]:
    """Return `count` locations, the five grounds in turn, each with its own light and colours."""
    side = int(np.ceil(np.sqrt(count)))
    return [
        _location(number, list(GROUNDS)[number % len(GROUNDS)], divmod(number, side), seed) for number in range(count)
    ]


def footprints(corners: Sequence[NDArray[np.float64]]) -> list[str]:
    """Return polygons in metres of `CRS` as WKT in degrees of longitude and latitude."""
    ends = np.cumsum([len(polygon) for polygon in corners])
    metres = np.concatenate(corners)
    degrees = np.stack(transform(CRS, "EPSG:4326", *metres.T.tolist()), axis=1)
    rings = (np.vstack([ring, ring[:1]]) for ring in np.split(degrees, ends[:-1]))
    return [f"POLYGON (({', '.join(f'{x:.9f} {y:.9f}' for x, y in ring)}))" for ring in rings]


def _location(number: int, ground: str, cell: tuple[int, int], seed: int) -> Location:
    rng = np.random.default_rng([seed, 1, number])
    tints = {name: np.exp(rng.normal(0, 0.16) + rng.normal(0, 0.035, 3)) for name in SURFACES}
    day, minute = int(rng.integers(365)), int(rng.integers(9 * 60, 16 * 60))
    time = np.datetime64("2025-01-01T00:00:00") + np.timedelta64(day, "D") + np.timedelta64(minute, "m")
    return Location(
        name=f"{ground}-{number:03d}",
        ground=ground,
        easting=_ORIGIN[0] + cell[1] * _APART_METRES + rng.uniform(0, 2000),
        northing=_ORIGIN[1] + cell[0] * _APART_METRES + rng.uniform(0, 2000),
        sun_azimuth=90 + (minute - 9 * 60) / (7 * 60) * 180,  # from the east in the morning round by the south
        time=f"{time}Z",
        tints={name: (float(tint[0]), float(tint[1]), float(tint[2])) for name, tint in tints.items()},
    )
