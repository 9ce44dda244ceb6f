"""Figure 4: its settings are the paper's, and one component each is the Gaussian ratio."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.lab.paper.smoke import smoke

from lookdown.adaptation import AdaptationSettings, adapt
from lookdown.errors import CollapsedComponentWarning, LowRankWarning
from lookdown.lab.paper import figure_4
from lookdown.lab.paper.report import Page, PageFigure, Table, spread
from lookdown.lab.paper.tasks import SHIPS
from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio

pytest.importorskip("matplotlib")


@lru_cache
def page() -> Page:
    return figure_4.make(smoke())


def column(variant: int) -> list[str]:
    table = page().parts[1]
    assert isinstance(table, Table)
    return [row[1 + variant] for row in table.rows]


def test_one_component_each_is_the_unclipped_gaussian() -> None:
    plain, adapted = [], []
    for seed in smoke().each_seed:
        case = smoke().case(SHIPS, "glrt", seed)
        train, labels = case.embeddings[case.roles.train], case.domain.labels[case.roles.train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowRankWarning)
            ratio = GaussianLikelihoodRatio(shrinkage=0.1, indefinite="keep").fit(train, labels)
        clusters = len(set(case.target_labels.tolist()))
        plain.append(case.mean_average_precision(ratio))
        new = adapt(ratio, case.target, clusters=clusters, method=AdaptationSettings(indefinite="keep"), seed=seed)
        adapted.append(case.mean_average_precision(new.metric))
    assert column(2)[0] == spread(plain)
    assert column(0)[0] == column(1)[0] == spread(adapted)


def test_more_components_are_fitted_as_the_settings_say() -> None:
    case, recipe = smoke().case(SHIPS, "glrt", 0), smoke().recipe(SHIPS, "glrt", 0)
    train, labels = case.embeddings[case.roles.train], case.domain.labels[case.roles.train]
    source = figure_4.mixture(recipe, 1, 3).fit(train, labels)
    assert figure_4.point(case, recipe, figure_4.VARIANTS[2], 3).mean_average_precision == pytest.approx(
        case.mean_average_precision(source)
    )
    clusters = len(np.unique(case.target_labels))
    adapted = adapt(source, case.target, clusters=clusters, method="cplfpa").metric
    assert figure_4.point(case, recipe, figure_4.VARIANTS[0], 3).mean_average_precision == pytest.approx(
        case.mean_average_precision(adapted)
    )
    assert [variant.meaning for variant in figure_4.VARIANTS] == [
        "K1 = 1, CPLFPA",
        "K1 = N, CPLFPA",
        "K1 = 1, no CPLFPA",
        "K1 = N, diagonal, CPLFPA",
    ]


def test_a_collapse_is_noted_and_does_not_end_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    case, recipe = smoke().case(SHIPS, "glrt", 0), smoke().recipe(SHIPS, "glrt", 0)
    whole = MixtureLikelihoodRatio.fit

    def losing(self: MixtureLikelihoodRatio, *data: object) -> MixtureLikelihoodRatio:
        warnings.warn("one is lost", CollapsedComponentWarning, stacklevel=1)
        return whole(self.set_params(different=1), *data)  # type: ignore[arg-type,no-any-return]

    assert not figure_4.point(case, recipe, figure_4.VARIANTS[2], 2).collapsed
    monkeypatch.setattr(MixtureLikelihoodRatio, "fit", losing)
    assert figure_4.point(case, recipe, figure_4.VARIANTS[2], 2).collapsed


def test_the_curves_are_those_of_the_table(tmp_path: Path) -> None:
    picture = page().parts[0]
    assert isinstance(picture, PageFigure)
    containers = picture.figure.axes[0].containers
    assert len(containers) == len(figure_4.VARIANTS)
    for variant, bars in enumerate(containers):
        heights = np.asarray(bars[0].get_ydata(), np.float64)
        assert [f"{height:.1f}" for height in heights] == [cell.split()[0] for cell in column(variant)]
    text = page().write("figure_4", tmp_path, tmp_path / "kept", "command").read_text()
    assert smoke().caption(SHIPS) in text
    with Image.open(tmp_path / "figure_4.png") as image:
        assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 20
