"""Table V, in small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.adaptation import adapt
from lookdown.lab.paper.cluster_counts import OFFSETS, make, sweep
from lookdown.lab.paper.paper_values import BASE_CLUSTERS, CLUSTERS
from lookdown.lab.paper.report import Page, PageFigure, Table, spread
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import TASKS, UDA_SHIPS


@pytest.fixture(scope="module")
def page() -> Page:
    return make(smoke())


def test_every_task_has_a_row_for_each_number_of_clusters_beside_the_paper(page: Page) -> None:
    tables = [part for part in page.parts if isinstance(part, Table)]
    assert [table.title for table in tables] == [task.name for task in TASKS]
    for task, table in zip(TASKS, tables, strict=True):
        assert smoke().caption(task) in page.caption.splitlines()
        assert [row[0] for row in table.rows] == ["-3", "-2", "-1", "+0", "+1", "+2", "+3"]
        assert [int(row[4]) - BASE_CLUSTERS[task.name] for row in table.rows] == list(OFFSETS)
        assert [float(row[5]) for row in table.rows] == list(CLUSTERS[task.name])
    assert isinstance(page.parts[-1], PageFigure)


def test_a_row_is_the_mean_over_seeds_of_adaptation_with_that_many_clusters(page: Page) -> None:
    experiment = smoke()
    cases = [experiment.case(UDA_SHIPS, "glrt", seed) for seed in experiment.each_seed]
    (table,) = (part for part in page.parts if isinstance(part, Table) and part.title == UDA_SHIPS.name)
    found = []
    for seed, case in enumerate(cases):
        objects = case.target_labels[case.target_labels != ""]
        assert base_clusters(case) == len(set(objects.tolist())) + 1
        adapted = adapt(case.source, case.target, clusters=base_clusters(case) + 2, method="cplfpa", seed=seed)
        found.append(case.mean_average_precision(adapted.metric))
    counts = sorted({base_clusters(case) + 2 for case in cases})
    assert table.rows[5][1] == " to ".join(map(str, counts))
    assert table.rows[5][2] == spread(found)


def test_fewer_than_two_clusters_are_left_out() -> None:
    case = smoke().case(UDA_SHIPS, "glrt", 0)
    kept = sorted(set(case.target_labels.tolist()))[1:4]
    roles = case.roles
    few = replace(
        roles,
        query=roles.query[np.isin(case.domain.labels[roles.query], kept)],
        gallery=roles.gallery[np.isin(case.domain.labels[roles.gallery], kept)],
    )
    case = replace(case, roles=few)
    assert base_clusters(case) == 3
    found = sweep(case, 0)
    assert list(found) == [-1, 0, 1, 2, 3]
    two = adapt(case.source, case.target, clusters=2, method="cplfpa", seed=0)
    assert found[-1] == pytest.approx(case.mean_average_precision(two.metric))
