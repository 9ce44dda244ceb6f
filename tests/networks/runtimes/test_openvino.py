"""OpenVinoRuntime: any number of images, from several threads, always the rows of one image alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.networks.exports import chips, owner

from lookdown.networks.runtimes.openvino import OpenVinoRuntime

pytestmark = pytest.mark.export


@pytest.mark.parametrize("count", [1, 3, 8, 17, 40])
def test_rows_do_not_depend_on_the_images_beside_them(count: int) -> None:
    runtime = OpenVinoRuntime(owner() / "exported" / "openvino" / "model.xml")
    images = chips(count)
    raw, transformed = runtime.run(images)
    assert (raw.shape, transformed.shape) == ((count, 8), (count, 5))
    alone = [runtime.run(images[row : row + 1]) for row in range(count)]
    np.testing.assert_allclose(raw, np.concatenate([one[0] for one in alone]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(transformed, np.concatenate([one[1] for one in alone]), rtol=1e-4, atol=1e-5)


def test_several_threads_may_ask() -> None:
    runtime = OpenVinoRuntime(owner() / "exported" / "openvino" / "model.xml")
    images = chips(64)
    wanted = runtime.run(images)[0]
    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(lambda start: runtime.run(images[start : start + 7])[0], range(0, 64, 7)))
    np.testing.assert_allclose(np.concatenate(parts), wanted, rtol=1e-4, atol=1e-5)
