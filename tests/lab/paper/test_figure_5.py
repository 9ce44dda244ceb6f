"""Figure 5: real differences are what they are called, and the AUC knows a good model from a bad one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.lab.paper.smoke import smoke

from lookdown.lab.paper import figure_5
from lookdown.lab.paper.figure_4 import mixture
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.tasks import SHIPS
from lookdown.metrics import MixtureLikelihoodRatio

pytest.importorskip("matplotlib")


@lru_cache
def page() -> Page:
    return figure_5.make(smoke())


@pytest.mark.parametrize("part", figure_5.PARTS)
@pytest.mark.parametrize("kind", figure_5.KINDS)
def test_differences_are_of_pairs_of_their_kind(part: figure_5.Part, kind: figure_5.Kind) -> None:
    case = smoke().case(SHIPS, "glrt", 0)
    rows = case.embeddings / np.linalg.norm(case.embeddings, axis=1, keepdims=True)
    first, second = (case.roles.train, case.roles.train) if part == "train" else (case.roles.query, case.roles.gallery)
    alike = case.domain.labels[first][:, None] == case.domain.labels[second]
    known = (rows[first][:, None] - rows[second])[alike == (kind == "same")]
    found = figure_5.true_differences(case, part, kind, 15)
    for one in np.concatenate([found.first, found.second]):
        gaps = min(np.abs(known - one).max(axis=1).min(), np.abs(known + one).max(axis=1).min())
        assert gaps < 1e-12
    assert (np.abs(found.first).max(axis=1) > 0).all()


def test_the_halves_share_no_difference() -> None:
    found = figure_5.true_differences(smoke().case(SHIPS, "glrt", 0), "train", "same", 1_000)
    apart = np.abs(found.first[:, None] - found.second).max(axis=2)
    mirrored = np.abs(found.first[:, None] + found.second).max(axis=2)
    assert min(apart.min(), mirrored.min()) > 0


def test_a_right_model_is_not_recognised_and_a_wrong_one_is() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(100), 5)
    chips = np.repeat(rng.normal(size=(100, 4)), 5, axis=0) + rng.normal(size=(500, 4))
    model = MixtureLikelihoodRatio(1, 1, normalize=False).fit(chips, labels)
    right = figure_5.Differences(*(model.sample(400, "same", seed=10 + half) for half in (0, 1)))
    wrong = figure_5.Differences(3 * right.first, 3 * right.second)
    assert figure_5.recognised(model, right, "same") == pytest.approx(0.5, abs=0.06)
    assert figure_5.recognised(model, wrong, "same") > 0.8


def test_the_table_has_the_density_of_the_gaussian() -> None:
    case = smoke().case(SHIPS, "glrt", 0)
    model = mixture(smoke().recipe(SHIPS, "glrt", 0), 1, 1)
    model.fit(case.embeddings[case.roles.train], case.domain.labels[case.roles.train])
    table = page().parts[1]
    assert isinstance(table, Table)
    assert len(table.rows) == 4
    for row, part in zip(table.rows, figure_5.PARTS, strict=False):
        real = figure_5.true_differences(case, part, "different", 100)
        covariance = model.different_.covariances[0]
        x = np.concatenate([real.first, real.second])
        squares = [one @ np.linalg.solve(covariance, one) for one in x]
        density = -(np.mean(squares) + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
        assert row[4] == f"{density:.1f}"
    assert all(0 <= float(cell) <= 1 for row in table.rows for cell in row[1:3])


def test_four_panels_of_four_clouds(tmp_path: Path) -> None:
    picture = page().parts[0]
    assert isinstance(picture, PageFigure)
    assert len(picture.figure.axes) == 4
    for axes in picture.figure.axes:
        sizes = [len(np.asarray(cloud.get_offsets())) for cloud in axes.collections]
        assert sizes == [40] * 4
        assert {str(cloud.get_label()) for cloud in axes.collections} == {
            f"{origin}, {kind}" for origin in ("real", "simulated") for kind in figure_5.KINDS
        }
    text = page().write("figure_5", tmp_path, tmp_path / "kept", "command").read_text()
    assert replace(smoke(), seeds=1).caption(SHIPS) in text
    with Image.open(tmp_path / "figure_5.png") as image:
        assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 20
