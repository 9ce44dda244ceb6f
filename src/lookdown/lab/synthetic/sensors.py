"""What a sensor makes of the light: its resolution, colours, haze and noise, and the height of the sun at its pass.

Two sensors are given. `between` moves from one to the other, which is the dial for a shift of the domain.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from lookdown.errors import InputError
from lookdown.lab.synthetic.rendering import Field

__all__ = ["FAR", "NEAR", "Sensor", "between", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """A camera in orbit or on an aircraft."""

    name: str
    gsd: float  # metres a pixel
    blur: float  # spread of a point, in its pixels
    red: float = 1.0
    green: float = 1.0
    blue: float = 1.0
    saturation: float = 1.0  # 0: panchromatic
    haze: float = 0.0  # share of the light that comes from the air
    exposure: float = 1.0
    gamma: float = 2.2
    sun_elevation: float = 50.0  # degrees
    noise: float = 0.01  # spread, as a share of white


NEAR = Sensor(name="near", gsd=0.3, blur=0.45, haze=0.04, exposure=1.25, sun_elevation=52, noise=0.006)
FAR = Sensor(
    name="far", gsd=0.5, blur=0.85, red=1.14, blue=0.80, saturation=0.40, haze=0.26, exposure=1.05, gamma=1.9,
    sun_elevation=28, noise=0.022,
)  # fmt: skip
_AIR = np.array([0.42, 0.46, 0.52], np.float32)  # the colour of haze
_GREY = np.array([0.30, 0.59, 0.11], np.float32)


def between(first: Sensor, second: Sensor, amount: float) -> Sensor:
    """Return the sensor that lies `amount` of the way from the first (0) to the second (1)."""
    if not 0 <= amount <= 1:
        raise InputError(f"a shift is from 0, the sensor trained on, to 1, the other one; got {amount:g}")
    if amount in (0, 1):
        return (first, second)[int(amount)]
    values = {
        field.name: (1 - amount) * getattr(first, field.name) + amount * getattr(second, field.name)
        for field in fields(Sensor)
        if field.name != "name"
    }
    return Sensor(name=f"{first.name}-{second.name}-{amount:.2f}", **values)


def observe(sensor: Sensor, radiance: Field, step: float, noise: np.random.Generator) -> NDArray[np.uint8]:
    """Return the picture that a sensor takes of `radiance` sampled every `step` metres.

    A chip whose pixels are coarser than the sensor's comes from a picture that was averaged down, and keeps the blur
    of one pixel; a finer one shows how far the sensor resolves.
    """
    spread = sensor.blur * max(sensor.gsd / step, 1.0)
    for axis in (0, 1):
        radiance = gaussian_filter1d(radiance, spread, axis=axis, mode="nearest", truncate=3)
    grey = radiance @ _GREY
    picture = grey[:, :, None] + sensor.saturation * (radiance - grey[:, :, None])
    picture = picture * np.array([sensor.red, sensor.green, sensor.blue], np.float32) * np.float32(sensor.exposure)
    picture = (1 - sensor.haze) * picture + sensor.haze * _AIR
    picture = np.clip(picture, 0, 1) ** np.float32(1 / sensor.gamma)
    picture += np.float32(sensor.noise) * noise.standard_normal(picture.shape, dtype=np.float32)
    return (np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)
