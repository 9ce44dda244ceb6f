"""Table VIII, in small."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.adaptation import adapt
from lookdown.lab.paper.report import Table
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.running_time import SAMPLES, TimedTarget, make, measure
from lookdown.lab.paper.tasks import UDA_SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import GaussianLikelihoodRatio, PairMoments
from lookdown.metrics.differences import draw_differences


@pytest.fixture(scope="module")
def case() -> Case:
    return smoke().case(UDA_SHIPS, "glrt", 0)


@pytest.fixture(scope="module")
def target(case: Case) -> TimedTarget:
    return TimedTarget.of(case, 0, turns=1)


def test_all_pairs_are_worth_what_adapt_is(case: Case, target: TimedTarget) -> None:
    adapted = adapt(case.source, case.target, clusters=base_clusters(case), method="cplfpa", seed=0)
    turn = target.whole()
    assert turn.mean_average_precision == pytest.approx(case.mean_average_precision(adapted.metric), abs=1e-9)
    labels = target.labels.tolist()
    same = sum(a == b for a, b in combinations(labels, 2))
    assert turn.pairs == (same, len(labels) * (len(labels) - 1) // 2 - same)


def test_a_sample_that_holds_every_pair_is_worth_the_same(target: TimedTarget) -> None:
    whole, sampled = target.whole(), target.sampled(SAMPLES[0], seed=0)
    assert sampled.pairs == whole.pairs, "the small world has fewer pairs than are asked for"
    assert sampled.mean_average_precision == pytest.approx(whole.mean_average_precision, abs=1e-9)


@pytest.mark.parametrize("pairs", [400, SAMPLES[0]])
def test_the_covariances_of_a_sample_are_those_of_a_loop(
    target: TimedTarget, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    seen: list[tuple[Any, ...]] = []
    fit = GaussianLikelihoodRatio.fit_covariances

    def spy(self: GaussianLikelihoodRatio, *covariances: Any, free: tuple[float, float]) -> None:
        seen.append((*covariances, free))
        fit(self, *covariances, free=free)

    monkeypatch.setattr(GaussianLikelihoodRatio, "fit_covariances", spy)
    turn = target.sampled(pairs, seed=1)
    assert turn.seconds == turn.differences + turn.update > 0
    ((same, different, mean, free),) = seen
    unit = target.case.target / np.linalg.norm(target.case.target, axis=1)[:, None]
    whole = PairMoments.of(unit, target.labels)
    for alike, found, count, exact in zip(
        (True, False), (same, different), turn.pairs, whole.covariances(), strict=True
    ):
        drawn = draw_differences(unit, target.labels, same=alike, pairs=pairs, weighting="pairs", seed=1)
        expected = sum(np.outer(row, row) for row in drawn) / len(drawn)
        assert count == len(drawn) == min(pairs, whole.same_pairs if alike else whole.different_pairs)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(np.trace(found), np.trace(exact), rtol=1e-9 if pairs > count else 0.2)
    np.testing.assert_allclose(mean, unit.mean(axis=0))
    assert free == (len(unit) - len(set(target.labels.tolist())), len(unit) - 1)


def test_the_page_has_ours_above_the_paper_and_says_where_pairs_are_few(target: TimedTarget) -> None:
    page = make(smoke())
    table, said = page.parts
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [
        *(name for pairs in SAMPLES for name in (f"{pairs:,}", f"{pairs:,}, the paper")),
        "all",
    ]
    assert table.rows[1][1:6] == ("2.4", "1.4", "2.5", "6.3", "53.3")
    for row in (*table.rows[0:6:2], table.rows[-1]):
        steps = [float(cell) for cell in row[1:5]]
        assert sum(steps[:3]) == pytest.approx(steps[3], abs=2e-4)
    assert all(float(row[6]) > 0 for row in table.rows[0:6:2])
    assert page.caption.startswith(smoke().caption(UDA_SHIPS))
    assert "of this machine" in page.caption
    assert "fewer same pairs than are asked for (20,000, 30,000, 40,000)" in str(said)
    assert set(measure(target, 1)) == {*SAMPLES, None}
