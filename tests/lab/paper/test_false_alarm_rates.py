"""Realised false-alarm rates: against loops over pairs, and reported as they are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.lab.paper.false_alarm_rates import (
    METRICS,
    RATES,
    LabelledChips,
    RealisedRate,
    calibrated_metrics,
    halves,
    make,
    realised,
)
from lookdown.lab.paper.report import Table
from lookdown.lab.paper.tasks import TASKS, UDA_MAR
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Estimate


@pytest.fixture(scope="module")
def case() -> Case:
    return smoke().case(UDA_MAR, "glrt", 0)


def test_halves_share_no_place_and_hold_all_of_the_target(case: Case) -> None:
    first, second = halves(case, 0)
    assert not set(case.domain.groups[first]) & set(case.domain.groups[second])
    assert sorted([*first, *second]) == sorted(case.roles.target)
    assert abs(len(set(case.domain.groups[first])) - len(set(case.domain.groups[second]))) <= 1
    assert case.domain.background[first].any()
    assert set(first) != set(halves(case, 1)[0])


def test_realised_rates_are_those_of_a_loop_over_pairs_of_the_other_half(case: Case) -> None:
    seen, held_out = (LabelledChips.of(case, rows) for rows in halves(case, 0))
    metrics = calibrated_metrics(case, seen, 0)
    assert list(metrics) == list(METRICS)
    assert case.source.calibration_ is None, "the case is left as it was"
    for metric in metrics.values():
        found = realised(metric, held_out)
        assert {of_rate.requested for of_rate in found} == {r for r in RATES if metric.threshold(r).supported}
        pairs = [
            (i, j)
            for i, j in combinations(range(len(held_out.labels)), 2)
            if not (held_out.background[i] and held_out.background[j]) and held_out.labels[i] != held_out.labels[j]
        ]
        first, second = np.array(pairs).T
        scores = metric.score_pairs(held_out.embeddings[first], held_out.embeddings[second])
        for requested, rate in found:
            expected = float(np.mean(scores >= metric.threshold(requested)))
            assert float(rate) == pytest.approx(expected, rel=0.03, abs=3 / len(pairs))
            assert rate.low <= rate <= rate.high


def test_thresholds_on_the_target_give_their_rate_where_they_were_set(case: Case) -> None:
    seen = LabelledChips.of(case, halves(case, 0)[0])
    for name, metric in calibrated_metrics(case, seen, 0).items():
        for requested, rate in realised(metric, seen):
            if name != METRICS[0]:
                assert float(rate) == pytest.approx(requested, rel=0.01)
                assert RealisedRate(requested, rate).covers


def test_an_interval_covers_what_lies_in_it() -> None:
    rate = Estimate(0.02, method="empirical", low=0.01, high=0.03, supported=True)
    assert RealisedRate(0.01, rate).covers
    assert RealisedRate(0.03, rate).covers
    assert not RealisedRate(0.1, rate).covers
    assert not RealisedRate(0.001, rate).covers


def test_the_page_says_of_each_row_whether_the_rate_is_covered_and_counts_right() -> None:
    page = make(smoke())
    verdict, tables = str(page.parts[0]), [part for part in page.parts if isinstance(part, Table)]
    assert [table.title for table in tables] == [task.name for task in TASKS]
    for name in METRICS:
        kept = cases = 0
        for row in (row for table in tables for row in table.rows if row[0] == name and row[4] != "not supported"):
            words = row[4].split()
            of_row = int(words[3]) if len(words) > 1 else 2
            cases += of_row
            kept += int(words[1]) if len(words) > 1 else of_row * (row[4] == "yes")
        assert f"- {name}: the interval covers the requested rate in {kept} of {cases} cases" in verdict
        assert ("does not keep" in verdict.split(f"- {name}")[1].split("\n")[0]) == (kept < cases)
    assert all(len(table.rows) == len(METRICS) * len(RATES) for table in tables)
