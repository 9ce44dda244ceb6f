"""Degraded queries: degradations do what they say, and the table is of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.chips.pixels import letterbox, read_chip
from lookdown.lab.paper.report import Table
from lookdown.lab.paper.robustness import DEGRADATIONS, NETWORKS, coarser, make, noisy, query_images, searched, turned
from lookdown.lab.paper.tasks import MAR, SHIPS
from lookdown.metrics import Cosine

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 3, 32, 32), dtype=np.uint8)
FLAT = np.broadcast_to(np.array([10, 90, 250], np.uint8)[:, None, None], (2, 3, 32, 32)).copy()


@pytest.mark.parametrize("sigma", [10, 25])
def test_noise_has_its_sigma_and_no_bias(sigma: int) -> None:
    grey = np.full((20, 3, 32, 32), 128, np.uint8)
    change = noisy(grey, sigma).astype(np.float64) - grey
    assert change.std() == pytest.approx(sigma, rel=0.02)
    assert abs(change.mean()) < 0.02 * sigma
    bands = change.transpose(1, 0, 2, 3).reshape(3, -1)
    assert np.abs(np.corrcoef(bands) - np.eye(3)).max() < 0.05, "bands are independent"
    np.testing.assert_array_equal(noisy(grey, sigma), noisy(grey, sigma))


def test_lower_resolution_leaves_a_constant_image_and_averages_squares() -> None:
    for factor in (2, 4):
        np.testing.assert_array_equal(coarser(FLAT, factor), FLAT)
    blocks = np.kron(RNG.integers(0, 256, (1, 1, 16, 16)), np.ones((2, 2))).astype(np.uint8)
    assert coarser(blocks, 2).shape == blocks.shape
    checks = (255 * (np.indices((32, 32)).sum(axis=0) % 2)).astype(np.uint8)[None, None]
    assert set(np.unique(coarser(checks, 2))) <= {127, 128}, "details of one pixel are gone"
    assert coarser(IMAGES, 4).std() < coarser(IMAGES, 2).std() < IMAGES.std()


def test_a_quarter_turn_is_exact_and_corners_have_the_mean_colour() -> None:
    np.testing.assert_array_equal(turned(IMAGES, 90), np.rot90(IMAGES, axes=(2, 3)))
    np.testing.assert_array_equal(turned(FLAT, 45), FLAT)
    corners = turned(IMAGES, 45)[:, :, [0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_array_equal(corners, np.round(IMAGES.mean(axis=(2, 3)))[:, :, None].repeat(4, axis=2))


def test_queries_are_read_as_the_network_reads_them_and_found_as_before() -> None:
    experiment = smoke()
    case = experiment.case(MAR, "unified", 0)
    paths = [case.domain.paths[row] for row in case.roles.query]
    images = query_images(paths, 32)
    assert images.shape == (len(paths), 3, 32, 32)
    np.testing.assert_array_equal(images[5], letterbox(read_chip(paths[5]), 32).transpose(2, 0, 1))
    embedder = experiment.trained(MAR, experiment.recipe(MAR, "unified", 0)).embedder()
    np.testing.assert_allclose(embedder.embed(images), case.embeddings[case.roles.query], rtol=1e-3, atol=1e-3)
    curves = searched(experiment, MAR, DEGRADATIONS[:1])
    plain = case.mean_average_precision(Cosine().fit(case.embeddings))
    assert curves["unified"]["noise", 0][0] == pytest.approx(plain, abs=0.05)
    ratio = experiment.case(MAR, "glrt", 0)
    assert curves["glrt"]["noise", 0][0] == pytest.approx(ratio.mean_average_precision(ratio.source), abs=0.05)
    assert {len(values) for found in curves.values() for values in found.values()} == {len(experiment.each_seed)}


def test_the_page_has_one_level_of_each_kind_in_small() -> None:
    page = make(smoke())
    tables = [part for part in page.parts if isinstance(part, Table)]
    assert [table.title for table in tables] == [MAR.name, SHIPS.name]
    for table in tables:
        assert table.header == ("query", *NETWORKS.values())
        assert [row[0] for row in table.rows] == [
            "as it is",
            "noise, 10 grey levels",
            "1/2 of the pixels a side",
            "turned by 15 degrees",
        ]
        for plain, changed in zip(table.rows[0][1:], table.rows[1][1:], strict=True):
            value, change = (float(part.split("±")[0]) for part in changed.split(","))
            assert value - float(plain.split("±")[0]) == pytest.approx(change, abs=0.11)
    assert "2 seeds" in page.caption
