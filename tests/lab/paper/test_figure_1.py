"""Figure 1: its table against loops over pairs, and a picture that shows both charts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.lab.paper.smoke import smoke

from lookdown.lab.paper import figure_1
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.tasks import SHIPS
from lookdown.metrics import Cosine

pytest.importorskip("matplotlib")


@lru_cache
def page() -> Page:
    return figure_1.make(smoke())


def naive_figures(same: list[float], different: list[float]) -> list[str]:
    """Overlap, AUC and d' by comparing every pair with every pair."""
    a, b = np.array(same), np.array(different)
    wins = sum(float((one > b).sum() + (one == b).sum() / 2) for one in a)
    errors = min(float((a < t).mean() + (b >= t).mean()) for t in [*a, *b, np.inf])
    apart = (a.mean() - b.mean()) / np.sqrt((a.std() ** 2 + b.std() ** 2) / 2)
    return [f"{100 * errors:.1f} %", f"{wins / len(a) / len(b):.3f}", f"{apart:.2f}"]


@pytest.mark.parametrize(("row", "loss"), [(0, "unified"), (1, "glrt")])
def test_the_table_is_what_a_loop_over_pairs_finds(row: int, loss: str) -> None:
    case = smoke().case(SHIPS, loss, 0)
    metric = case.source if loss == "glrt" else Cosine().fit(case.embeddings)
    scores = metric.score(case.embeddings[case.roles.query], case.embeddings[case.roles.gallery])
    kinds: dict[bool, list[float]] = {True: [], False: []}
    for i, query in enumerate(case.roles.query):
        for j, item in enumerate(case.roles.gallery):
            alike = not case.domain.background[item] and case.domain.labels[query] == case.domain.labels[item]
            kinds[bool(alike)].append(float(scores[i, j]))
    table = page().parts[1]
    assert isinstance(table, Table)
    assert list(table.rows[row][1:]) == naive_figures(kinds[True], kinds[False])


def test_scores_that_do_not_overlap_are_told_apart_and_equal_ones_are_not() -> None:
    apart = figure_1.PairScores("", "", np.array([2.0, 3.0]), np.array([0.0, 1.0]))
    assert (apart.overlap, apart.area) == (0.0, 1.0)
    assert 1 <= apart.best_threshold < 2
    alike = figure_1.PairScores("", "", np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert (alike.overlap, alike.area, alike.separation) == (1.0, 0.5, 0.0)


def test_the_charts_have_labels_and_curves_of_area_one() -> None:
    picture = page().parts[0]
    assert isinstance(picture, PageFigure)
    assert len(picture.figure.axes) == 2
    for axes in picture.figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel() == "density"
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text().split()[0] for text in legend.get_texts()] == ["different", "same", "best"]
        for patch in axes.patches:
            heights, edges, _ = patch.get_data()  # type: ignore[attr-defined]
            assert 0.99 <= (heights * np.diff(edges)).sum() <= 1 + 1e-9


def test_it_writes_a_picture_and_says_what_of(tmp_path: Path) -> None:
    text = page().write("figure_1", tmp_path, tmp_path / "kept", "command").read_text()
    assert replace(smoke(), seeds=1).caption(SHIPS) in text
    with Image.open(tmp_path / "figure_1.png") as image:
        assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 20
