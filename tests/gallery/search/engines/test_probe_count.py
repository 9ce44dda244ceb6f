"""Probes read off ranks, against trying one number after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import brute_force, clustered

from lookdown.gallery.search.engines import probe_count
from lookdown.gallery.search.engines.probe_count import ProbeCount, Trials, list_ranks

RNG = np.random.default_rng(0)


def test_a_list_ranks_by_how_many_centroids_are_nearer() -> None:
    queries, centroids = clustered(6, 3), clustered(20, 3, seed=1)
    lists = RNG.integers(20, size=(6, 4)).astype(np.int32)
    found = list_ranks(queries, centroids, lists)
    for query, row, ranks in zip(queries, lists, found, strict=True):
        far = np.square(centroids - query).sum(axis=1)
        assert ranks.tolist() == [(far < far[chosen]).sum() for chosen in row]


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_probes_are_the_least_that_find_enough(share: float) -> None:
    known = int(1000 * share)
    ranks = np.sort(RNG.geometric(0.05, size=(40, known)) - 1, axis=1)  # the further a neighbour, the further its list
    found = ProbeCount.measured(ranks, 512, share)
    assert [k for k, _ in found.steps] == [50, 100, 200, 500, 1000]
    for k, probes in found.steps:
        nearest = ranks[:, : int(k * share)]
        assert np.mean(nearest < probes) >= 0.994 > np.mean(nearest < probes - 1)
    assert found.recall == np.mean(ranks[:, : int(50 * share)] < found.probes(50))


def test_more_neighbours_take_more_probes() -> None:
    found = ProbeCount(100, ((50, 3), (100, 8), (400, 10)), 0.994)
    assert [found.probes(k) for k in (1, 50, 51, 400, 401, 800, 8000)] == [3, 3, 8, 10, 11, 20, 100]


def test_few_answers_are_made_the_most_of() -> None:
    assert ProbeCount.measured(np.array([[0, 3], [1, 2]]), 9, 1.0) == ProbeCount(9, ((2, 4),), 1.0)
    assert ProbeCount.measured(np.empty((1, 0), np.intp), 1, 1.0).probes(1000) == 1


@pytest.mark.parametrize(("rows", "share"), [(0, 1), (1, 1), (50_000, 1), (200_000, 0.5), (2_000_000, 0.1)])
def test_a_large_gallery_answers_by_a_share(rows: int, share: float) -> None:
    trials, again = Trials.drawn(rows, 3), Trials.drawn(rows, 3)
    assert trials.share == share
    assert abs(trials.witnesses.sum() - share * rows) <= 0.01 * rows
    assert trials.wanted == min(1000 * share + 1, rows)
    assert len(np.unique(trials.rows)) == min(384, rows)
    assert (np.diff(trials.rows) > 0).all()
    np.testing.assert_array_equal(trials.rows, again.rows)
    np.testing.assert_array_equal(trials.witnesses, again.witnesses)


def test_a_query_does_not_answer_itself() -> None:
    trials = Trials(np.array([2, 5]), np.array([1, 1, 1, 1, 0, 0, 0, 0], np.bool_), 1.0)
    others = trials.others(np.array([[2, 0, 1, 3], [3, 1, 0, 2]]))
    assert others.tolist() == [[0, 1, 3], [3, 1, 0]]


def test_a_share_of_the_answers_tells_the_recall_of_all(monkeypatch: Any) -> None:
    """The probes that a tenth of the rows asks for hold 99 % of all neighbours."""
    monkeypatch.setattr(probe_count, "_WITNESS_ROWS", 1000)
    z, trials = clustered(10_000, kinds=50, spread=0.6), Trials.drawn(10_000, 0)
    centroids = clustered(100, kinds=50, seed=5)
    lists = np.argmin(np.square(z[:, None] - centroids).sum(axis=2), axis=1).astype(np.int32)
    answers = [brute_force(z, z[row]).rows for row in trials.rows]
    witnessed = np.array([rows[trials.witnesses[rows]][: trials.wanted] for rows in answers])
    ranks = list_ranks(z[trials.rows], centroids, lists[trials.others(witnessed)])
    probes = ProbeCount.measured(ranks, 100, trials.share).probes(50)
    nearest = np.array([rows[1:51] for rows in answers])
    assert trials.share == 0.1
    assert 0.99 <= np.mean(list_ranks(z[trials.rows], centroids, lists[nearest]) < probes) < 1
