"""The paper's optimality claim, at a tenth of the published size."""

from __future__ import annotations

import numpy as np

from lookdown.lab.paper import discussion_1
from lookdown.lab.synthetic.gaussian_world import GaussianWorld


def test_the_ratio_detects_most_and_tends_to_the_true_parameters() -> None:
    world = GaussianWorld.random(16, gap=1.0)
    rows = discussion_1.run(world, (100, 1_000, 20_000), pairs=100_000, seeds=2)
    truth = rows["likelihood ratio, true parameters"]
    for name in ("likelihood ratio", "likelihood ratio, clipped"):
        few, some, many = (rows[f"{name}, {chips} chips"] for chips in ("100", "1,000", "20,000"))
        for other in (rows["cosine"], rows["Euclidean"]):
            assert (few >= other).all()
        assert (few <= some).all()
        assert (some <= many).all()
        np.testing.assert_allclose(many, truth, rtol=0.03)
        assert (few < 0.97 * truth).any(), "the small training set should leave something to learn"
