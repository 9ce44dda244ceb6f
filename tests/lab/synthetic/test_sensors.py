"""What a sensor does to the light."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.lab.synthetic.rendering import Field
from lookdown.lab.synthetic.sensors import FAR, NEAR, Sensor, between, observe

PLAIN = Sensor(name="plain", gsd=1.0, blur=0.01, noise=0.0)


def seen(sensor: Sensor, radiance: Field, step: float = 1.0) -> NDArray[np.float64]:
    return observe(sensor, radiance, step, np.random.default_rng(0)).astype(np.float64)


def test_a_plain_sensor_is_a_gamma_curve() -> None:
    radiance = np.linspace(0, 1, 48, dtype=np.float32).reshape(4, 4, 3)
    np.testing.assert_allclose(seen(PLAIN, radiance), np.floor(255 * radiance ** (1 / 2.2) + 0.5), atol=1)


def test_a_grey_sensor_has_no_colour_and_haze_has_no_black() -> None:
    radiance = np.random.default_rng(0).random((8, 8, 3), dtype=np.float32)
    grey = seen(Sensor(name="grey", gsd=1, blur=0.01, saturation=0, noise=0), radiance)
    assert np.ptp(grey, axis=2).max() <= 1
    hazy = seen(Sensor(name="hazy", gsd=1, blur=0.01, haze=0.5, noise=0), np.zeros_like(radiance))
    assert hazy.min() > 100


def test_blur_is_wider_where_pixels_are_finer_than_the_sensor() -> None:
    point = np.zeros((41, 41, 3), np.float32)
    point[20, 20] = 0.5
    sensor = Sensor(name="soft", gsd=1.0, blur=1.0, noise=0, gamma=1.0)
    coarse, fine = (seen(sensor, point, step)[:, :, 0] for step in (2.0, 0.5))
    assert coarse.max() > 3 * fine.max()


def test_noise_has_its_spread() -> None:
    flat = np.full((100, 100, 3), 0.2, np.float32)
    noisy = seen(Sensor(name="noisy", gsd=1, blur=0.01, noise=0.05), flat)
    assert noisy.std() == pytest.approx(0.05 * 255, rel=0.05)


def test_the_dial_goes_from_one_to_the_other() -> None:
    assert between(NEAR, FAR, 0) is NEAR
    assert between(NEAR, FAR, 1) is FAR
    half = between(NEAR, FAR, 0.5)
    assert half.haze == pytest.approx((NEAR.haze + FAR.haze) / 2)
    assert half.name == "near-far-0.50"
    with pytest.raises(InputError, match=r"from 0.*to 1.*got 1\.5"):
        between(NEAR, FAR, 1.5)
