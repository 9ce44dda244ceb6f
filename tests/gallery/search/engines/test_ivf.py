"""The approximate engine: lists kept from one metric to the next, and probes that hold what they promise."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.gallery.search.engines.vectors import assert_all, brute_force, clustered, columns, recall, stream

from lookdown.errors import InputError
from lookdown.gallery.search.engines import ivf as ivf_module
from lookdown.gallery.search.engines.engine import Lists, Vectors, VectorStream
from lookdown.gallery.search.engines.ivf import IVFEngine, ProbeCount, Trials, list_ranks

ROWS = 20_000
Z, QUERIES = clustered(ROWS), clustered(100, seed=1)


def ivf(z: Vectors, lists: Lists | None = None, **settings: Any) -> IVFEngine:
    return IVFEngine(stream(z), columns(len(z)), lists, **settings)


@cache
def first() -> IVFEngine:
    return ivf(Z)


def mean_recall(engine: IVFEngine, z: Vectors, queries: Vectors, k: int = 50) -> float:
    found = engine.nearest(queries, k)
    return float(np.mean([recall(one, brute_force(z, query), k) for query, one in zip(queries, found, strict=True)]))


def another_metric(condition: float, seed: int = 0) -> NDArray[np.float64]:
    """A linear map of which the squared singular values span `condition`."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(16, 16)))[0] for _ in range(2))
    return np.asarray(left * np.geomspace(1, condition**-0.5, 16) @ right)


def mapped(z: Vectors, map: NDArray[np.float64]) -> Vectors:
    return (z @ map).astype(np.float32)


def test_a_search_looks_through_few_lists_and_finds_almost_all() -> None:
    engine = first()
    assert engine.assignment.dtype == np.int32
    assert engine.assignment.shape == (ROWS,)
    assert engine.assignment.max() < 256
    assert engine.probes < 64
    assert engine.recall >= 0.994
    assert engine.lists_changed
    assert not engine.rebuilt
    assert mean_recall(engine, Z, QUERIES) >= 0.99


def test_the_recall_is_that_of_the_trials() -> None:
    rows = Trials.drawn(ROWS, 0).rows
    answers = [found.rows[1:] for found in first().nearest(Z[rows], 51)]
    kept = [recall_of(one, brute_force(Z, Z[row]).rows[1:51]) for row, one in zip(rows, answers, strict=True)]
    assert np.mean(kept) >= first().recall - 1e-9  # for 51 neighbours it looks through no fewer lists


def recall_of(found: NDArray[np.intp], expected: NDArray[np.intp]) -> float:
    return len(np.intersect1d(found, expected)) / len(expected)


@pytest.mark.parametrize("k", [100, 300, 1000])
def test_more_neighbours_are_found_as_well(k: int) -> None:
    assert mean_recall(first(), Z, QUERIES[:30], k) >= 0.99


def test_the_same_seed_gives_the_same_lists() -> None:
    again, other = ivf(Z), ivf(Z, seed=1)
    np.testing.assert_array_equal(again.assignment, first().assignment)
    assert (again.probes, again.recall) == (first().probes, first().recall)
    assert (other.assignment != first().assignment).any()


def test_lists_are_taken_over_as_they_are() -> None:
    engine = ivf(Z, first().assignment)
    np.testing.assert_array_equal(engine.assignment, first().assignment)
    assert not engine.lists_changed
    assert not engine.rebuilt
    assert mean_recall(engine, Z, QUERIES) >= 0.99


@pytest.mark.parametrize("condition", [10, 1000])
def test_lists_of_one_metric_serve_another(condition: float) -> None:
    map = another_metric(condition)
    z, queries = mapped(Z, map), mapped(QUERIES, map)
    engine = ivf(z, first().assignment)
    assert not engine.rebuilt
    assert not engine.lists_changed
    assert 4 * engine.probes <= 256
    assert mean_recall(engine, z, queries) >= 0.98


@pytest.mark.parametrize("rank", [1, 2])
def test_a_metric_of_few_dimensions_gets_lists_of_its_own(rank: int) -> None:
    map = np.random.default_rng(0).normal(size=(16, rank))
    z, queries = mapped(Z, map), mapped(QUERIES, map)
    engine = ivf(z, first().assignment)
    assert engine.rebuilt
    assert engine.lists_changed
    assert 4 * engine.probes <= 256
    np.testing.assert_array_equal(engine.assignment, ivf(z).assignment)
    assert mean_recall(engine, z, queries) >= 0.98


def test_lists_that_could_not_be_better_are_kept() -> None:
    """Noise needs many probes in any lists; to look for new ones at each start would be for nothing."""
    z = np.random.default_rng(0).normal(size=(5000, 32)).astype(np.float32)
    found = ivf(z)
    again = ivf(z, found.assignment)
    assert 4 * again.probes > 128
    assert not again.rebuilt
    assert mean_recall(again, z, z[:20] + np.float32(0.1)) >= 0.98


def test_new_rows_join_the_lists() -> None:
    known = first().assignment.copy()
    known[15_000:] = -1
    before = known.copy()
    engine = ivf(Z, known)
    np.testing.assert_array_equal(known, before)
    pairs = set(zip(engine.assignment[:15_000].tolist(), known[:15_000].tolist(), strict=True))
    assert len(pairs) == len(set(known[:15_000].tolist()))  # the same lists, maybe under other numbers
    assert (engine.assignment >= 0).all()
    assert engine.lists_changed
    assert not engine.rebuilt
    assert [found.rows[0] for found in engine.nearest(Z[15_000:15_100], 5)] == [*range(15_000, 15_100)]
    assert mean_recall(engine, Z, QUERIES) >= 0.99


def test_lists_may_be_empty() -> None:
    lists = 2 * first().assignment  # every other one is
    engine = ivf(Z, lists)
    assert not engine.rebuilt
    assert engine.probes == ivf(Z, first().assignment).probes
    np.testing.assert_array_equal(engine.assignment, first().assignment)
    assert mean_recall(engine, Z, QUERIES) >= 0.99


@pytest.mark.parametrize("lists", [np.arange(ROWS) % 50, np.arange(ROWS), np.full(ROWS, -1)])
def test_lists_of_a_gallery_of_another_size_are_not_used(lists: NDArray[np.int64]) -> None:
    engine = ivf(Z, lists.astype(np.int32))
    assert engine.rebuilt
    np.testing.assert_array_equal(engine.assignment, first().assignment)


@pytest.mark.parametrize(
    "lists", [np.zeros(ROWS - 1, np.int32), np.zeros(ROWS, np.float32), np.full(ROWS, -2, np.int32)]
)
def test_what_is_no_assignment_is_refused(lists: Any) -> None:
    with pytest.raises(InputError, match="lists must be 20000 numbers of type int32"):
        ivf(Z, lists)


def test_many_equal_rows_crowd_no_one_out() -> None:
    z = np.concatenate([np.zeros((5000, 16), np.float32), Z[:5000]])
    engine = ivf(z)
    for query in QUERIES[:5]:
        (found,) = engine.nearest(query[None], 6000)
        assert len(found.rows) == 6000
        assert_all(engine.reaching(query, -np.inf), brute_force(z, query), 10_000, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("given", "passes"), [("nothing", 3), ("all", 2), ("some", 3)])
def test_the_stream_is_read_no_more_often_than_needed(given: str, passes: int) -> None:
    read = []

    def batches() -> Iterator[Vectors]:
        read.append(1)
        return iter([Z])

    lists = first().assignment.copy()
    lists[0] = -1 if given == "some" else lists[0]
    IVFEngine(VectorStream(ROWS, 16, batches), columns(ROWS), None if given == "nothing" else lists)
    assert len(read) == passes


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
    monkeypatch.setattr(ivf_module, "_WITNESS_ROWS", 1000)
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
