"""The paper's figures, as its tables have them."""

from __future__ import annotations

from lookdown.lab.paper import loss_comparison
from lookdown.lab.paper.paper_values import ABLATION, CLUSTERS, COMPARISON
from lookdown.losses import LOSSES


def test_figures_of_the_paper_are_whole() -> None:
    assert set(ABLATION) == {1, 2, 3, 4, 6, 7}
    assert all(len(values) == 7 for values in CLUSTERS.values())
    for table in COMPARISON.values():
        assert list(table)[:10] == list(loss_comparison.BASELINES)
    assert {*loss_comparison.BASELINES, "unified", "glrt"} == set(LOSSES)
