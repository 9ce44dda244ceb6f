"""Searchers change at once, and searches in other threads go on."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import ArrayLike
from safetensors.numpy import save
from tests.gallery.galleries import kinds, vector_gallery

from lookdown import Euclidean, Gallery, GaussianLikelihoodRatio
from lookdown.errors import DamagedCacheWarning, UnsupportedOperationError
from lookdown.gallery.search.searcher import Searcher
from lookdown.gallery.search.searcher_cache import read_lists, write_lists
from lookdown.metrics import Metric
from lookdown.metrics.inputs import Embeddings


def test_searches_go_on_while_the_metric_is_switched(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g", 500)
    gallery.adapt(clusters=10)
    expected = {}
    for name in ("1-trained", "2-adapted"):
        gallery.use(name)
        expected[name] = gallery.search(X[0], k=10).hits
    stop, seen, problems = threading.Event(), set(), []

    def search() -> None:
        while not stop.is_set():
            found = gallery.search(X[0], k=10)
            seen.add(found.metric)
            if found.hits != expected[found.metric]:
                problems.append(found)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        gallery.use(("1-trained", "2-adapted")[turn % 2])
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert seen == {"1-trained", "2-adapted"}


def test_a_few_searchers_are_kept_and_no_more(tmp_path: Path) -> None:
    gallery, _, _ = vector_gallery(tmp_path / "g")
    gallery.adapt(clusters=5)
    for name in ("1-trained", "2-adapted", "cosine", "1-trained"):
        first = gallery._searchers.searcher(name)
        assert gallery._searchers.searcher(name) is first
    assert list(gallery._searchers._state.searchers) == ["2-adapted", "1-trained"], "the one in use stays"


def test_a_search_does_not_wait_while_another_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    expected = gallery.search(X[0], k=3).hits
    making, gate = threading.Event(), threading.Event()
    real = gallery._searchers._build

    def slow(*arguments: Any) -> Searcher:
        making.set()
        gate.wait(20)
        return real(*arguments)

    monkeypatch.setattr(gallery._searchers, "_build", slow)
    other = threading.Thread(target=lambda: gallery.search(X[0], k=3, metric="cosine"))
    other.start()
    making.wait(20)
    found: list[Any] = []
    searching = threading.Thread(target=lambda: found.append(gallery.search(X[0], k=3).hits), daemon=True)
    searching.start()
    searching.join(10)
    gate.set()
    other.join()
    assert found == [expected]


def test_a_low_rank_metric_is_searched_without_a_warning(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    X = (rng.normal(size=(400, 12)) * 0.5 + np.pad(rng.normal(size=(4, 2)) * 4, ((0, 0), (0, 10)))[y]).astype(
        np.float32
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = GaussianLikelihoodRatio(indefinite="keep").fit(X, y)
    gallery = Gallery.create(tmp_path / "g", metric=metric, dimension=12)
    gallery.add_embeddings([{"id": str(place)} for place in range(400)], X)
    scores = metric.score(X[:1], X)[0]
    assert [hit.id for hit in gallery.search(X[0], k=5).hits] == [str(row) for row in np.argsort(-scores)[:5]]


def test_a_metric_of_any_l2_kind_can_be_brought(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g")
    distances = np.linalg.norm(X - X[5], axis=1)
    found = gallery.search(X[5], k=7, metric=Euclidean().fit(X))
    assert [hit.id for hit in found.hits] == [rows[row]["id"] for row in np.argsort(distances)[:7]]
    assert found.metric == "Euclidean"


class _Odd(Metric):
    """A metric without a space."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        self._begin(8)
        return self

    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        raise NotImplementedError

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Embeddings:
        raise NotImplementedError


def test_a_metric_without_a_space_is_refused(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g", 20)
    with pytest.raises(UnsupportedOperationError, match="no space that a gallery could be searched in"):
        gallery.search(X[0], metric=_Odd().fit(kinds(3)[0]))


def test_lists_follow_the_numbers_and_not_the_order(tmp_path: Path) -> None:
    file = tmp_path / "index" / "lists.safetensors"
    write_lists(file, np.array([7, 3, 9]), np.array([1, 2, 0], np.int32))
    found = read_lists(file, np.array([9, 5, 3, 7, 100]))
    assert found is not None
    assert found.tolist() == [0, -1, 2, 1, -1]
    assert found.dtype == np.int32


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert read_lists(tmp_path / "lists.safetensors", np.array([1])) is None


@pytest.mark.parametrize("size", [0, 7, 40, -1])
def test_a_truncated_file_is_said_and_not_used(tmp_path: Path, size: int) -> None:
    file = tmp_path / "lists.safetensors"
    write_lists(file, np.arange(50), np.zeros(50, np.int32))
    file.write_bytes(file.read_bytes()[:size])
    with pytest.warns(DamagedCacheWarning, match=r"lists\.safetensors is damaged .* built again"):
        assert read_lists(file, np.arange(50)) is None


@pytest.mark.parametrize(
    "content",
    [
        {"keys": np.arange(3)},
        {"keys": np.arange(3), "lists": np.zeros(2, np.int32)},
        {"keys": np.arange(3), "lists": np.zeros(3)},
        {"keys": np.arange(3), "lists": np.array([0, -4, 1], np.int32)},
    ],
)
def test_a_file_with_something_else_is_not_used(tmp_path: Path, content: dict[str, np.ndarray]) -> None:
    file = tmp_path / "lists.safetensors"
    file.write_bytes(save(content))
    with pytest.warns(DamagedCacheWarning):
        assert read_lists(file, np.arange(3)) is None


def test_a_place_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file where the folder should be")
    write_lists(tmp_path / "index" / "lists.safetensors", np.arange(3), np.zeros(3, np.int32))
    assert (tmp_path / "index").read_text() == "a file where the folder should be"
