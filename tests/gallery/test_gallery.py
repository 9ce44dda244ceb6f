"""The contract of a gallery on any engine: brute force is the oracle; another engine joins by a name in `ENGINES`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.gallery.galleries import LABELS, SCENES, SENSORS, kinds, rows_of, vector_gallery

from lookdown import Cosine, Euclidean, Gallery, GaussianLikelihoodRatio, MixtureLikelihoodRatio, SearchRequest, Where
from lookdown.errors import GalleryBusyError, GalleryError, InputError, NotFittedError
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.gallery.store.snapshot import Snapshot

EngineName = Literal["exact", "ivf", "milvus"]
ENGINES = ("exact", "ivf", pytest.param("milvus", marks=pytest.mark.server))
IN_A_BUCKET = pytest.param("in a bucket", marks=pytest.mark.server)  # on the exact engine: where the table is, is all


@pytest.fixture(params=(*ENGINES, IN_A_BUCKET))
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> EngineName:
    if request.param == "in a bucket":
        table = request.getfixturevalue("table")
        number, create = itertools.count(), Gallery.create
        monkeypatch.setattr(
            Gallery, "create", lambda *given, **named: create(*given, **named | {"table": f"{table}{next(number)}"})
        )
        return "exact"
    name: EngineName = request.param
    if name == "milvus":
        monkeypatch.setenv("LOOKDOWN_MILVUS_URI", request.getfixturevalue("milvus").uri)
    return name


def ranked(gallery: Gallery, X: NDArray[np.float32], query: NDArray[np.float32]) -> tuple[list[int], NDArray[Any]]:
    """Return rows best first, and all scores, from the formula of the metric in use."""
    scores = gallery._registry.load(gallery.metric).score(query[None].astype(np.float64), X.astype(np.float64))[0]
    return list(np.argsort(-scores, kind="stable")), scores


def test_ids_and_scores_are_those_of_brute_force(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 700, engine=engine)
    missed = 0
    for query in kinds(720)[0][700:]:  # of the kinds that are there
        order, scores = ranked(gallery, X, query)
        found = gallery.search(query, k=25)
        wanted = [rows[row]["id"] for row in order[:25]]
        by_id = dict(zip((row["id"] for row in rows), scores, strict=True))
        missed += len(set(wanted) - {hit.id for hit in found.hits})
        if engine != "ivf":
            assert [hit.id for hit in found.hits] == wanted
        np.testing.assert_allclose(
            [hit.score for hit in found.hits], [by_id[hit.id] for hit in found.hits], rtol=1e-4, atol=1e-4
        )
        assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
        assert (found.rows_searched, found.engine, len(found)) == (700, engine, 25)
    assert missed <= 0.01 * 20 * 25


def naive(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Apply a filter to one chip, from what the words mean."""
    if "label" in wanted and row["label"] not in wanted["label"]:
        return False
    if "scene" in wanted and row["scene"] not in wanted["scene"]:
        return False
    if "sensor" in wanted and row["sensor"] not in wanted["sensor"]:
        return False
    if "since" in wanted and (row["time"] is None or row["time"][:10] < wanted["since"]):
        return False
    if "until" in wanted and (row["time"] is None or row["time"][:10] > wanted["until"]):
        return False
    if "box" in wanted:
        if row["footprint"] is None:
            return False
        numbers = [float(n) for n in row["footprint"][10:-2].replace(",", " ").split()]
        west, south, east, north = wanted["box"]
        lon, lat = numbers[::2], numbers[1::2]
        return bool(min(lon) <= east and max(lon) >= west and min(lat) <= north and max(lat) >= south)
    return True


def random_filter(rng: np.random.Generator) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "label": list(rng.choice(LABELS, rng.integers(0, 4), replace=False)),
        "scene": list(rng.choice(SCENES, rng.integers(1, 3), replace=False)),
        "sensor": [str(rng.choice([name for name in SENSORS if name]))],
        "since": f"2021-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
        "until": f"2021-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
        "box": (w := rng.uniform(-12, 8), s := rng.uniform(38, 58), w + rng.uniform(0, 12), s + rng.uniform(0, 12)),
    }
    kept = {name: value for name, value in drawn.items() if rng.random() < 0.35}
    if "since" in kept and "until" in kept and kept["since"] > kept["until"]:
        kept["since"], kept["until"] = kept["until"], kept["since"]
    return kept


def test_two_hundred_filters_find_all_and_only_what_they_should(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 250, engine=engine)
    rng = np.random.default_rng(1)
    queries = kinds(20, seed=5)[0]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    orders = [list(np.argsort(-unit @ query)) for query in queries]
    for number in range(200):  # that filters keep the right rows is shown for ten thousand in test_filters.py
        wanted = random_filter(rng)
        query = number % len(queries)
        expected = [rows[row]["id"] for row in orders[query] if naive(rows[row], wanted)]
        found = gallery.search(queries[query], k=10, where=Where(**wanted), metric="cosine")
        assert [hit.id for hit in found.hits] == expected[:10], wanted
        assert found.rows_searched == len(expected), wanted


def test_labels_with_quotes_and_operators_are_text(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", engine=engine)
    for label in LABELS:
        found = gallery.search(X[0], k=1_000, where=Where(label=label))
        assert {hit.id for hit in found.hits} == {row["id"] for row in rows if row["label"] == label}
        assert {hit.label for hit in found.hits} == {label}


def test_added_removed_and_added_again(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", engine=engine)
    assert gallery.search(X[17], k=1).hits[0].id == rows[17]["id"]
    assert gallery.remove([rows[17]["id"], rows[18]["id"]]) == 2
    assert len(gallery) == 298
    assert rows[17]["id"] not in {hit.id for hit in gallery.search(X[17], k=300).hits}
    again = gallery.add_embeddings(rows, X)
    assert (again.added, again.present) == (2, 298)
    assert gallery.search(X[17], k=1).hits[0].id == rows[17]["id"]
    assert gallery.remove(where=Where(scene=SCENES[1])) == 75
    order, _ = ranked(gallery, X, X[5])
    left = [rows[row]["id"] for row in order if rows[row]["scene"] != SCENES[1]]
    assert [hit.id for hit in gallery.search(X[5], k=300).hits] == left


def test_a_metric_that_learns_nothing_need_not_be_fitted_and_another_must_be(tmp_path: Path) -> None:
    assert Gallery.create(tmp_path / "cosine", metric=Cosine(), dimension=4).metric == "1-cosine"
    assert Gallery.create(tmp_path / "euclidean", metric=Euclidean(), dimension=4).metric == "1-trained"
    with pytest.raises(NotFittedError, match="call fit"):
        Gallery.create(tmp_path / "ratio", metric=GaussianLikelihoodRatio(), dimension=4)
    assert not (tmp_path / "ratio").exists()


def test_an_empty_gallery_finds_nothing(tmp_path: Path, engine: EngineName) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=4, engine=engine)
    found = gallery.search(np.ones(4))
    assert (found.hits, found.rows_searched) == ((), 0)
    assert gallery.search(np.ones(4), where=Where(label="x")).hits == ()
    assert gallery.stats().chips == 0


def test_k_may_be_larger_than_the_gallery(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 30, engine=engine)
    assert {hit.id for hit in gallery.search(X[0], k=1_000).hits} == {row["id"] for row in rows}


def test_a_rate_returns_every_match_that_the_test_accepts(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 600, engine=engine)
    gallery.calibrate()
    query = kinds(20, seed=5)[0][3]
    _, scores = ranked(gallery, X, query)
    found = gallery.search(query, false_alarm_rate=0.02)
    assert found.threshold is not None
    accepted = {row["id"] for row, score in zip(rows, scores, strict=True) if score >= found.threshold}
    assert len(accepted) > 10
    assert {hit.id for hit in found.hits} == accepted
    assert found.expected_false_hits == pytest.approx(0.02 * 600, rel=0.05)
    assert found.requested_false_alarm_rate == 0.02
    filtered = gallery.search(query, false_alarm_rate=0.02, where=Where(scene=SCENES[0]))
    assert {hit.id for hit in filtered.hits} == accepted & {row["id"] for row in rows if row["scene"] == SCENES[0]}
    assert filtered.rows_searched == 150


def test_a_new_metric_keeps_the_lists_and_finds_what_brute_force_finds(tmp_path: Path, engine: EngineName) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 900, engine=engine)
    gallery.search(X[0])
    learnt = gallery.adapt(clusters=10)
    assert learnt.changed
    order, _ = ranked(gallery, X, X[4])
    found = [hit.id for hit in gallery.search(X[4], k=20).hits]
    wanted = [rows[row]["id"] for row in order[:20]]
    assert len(set(found) & set(wanted)) >= 19
    if engine != "ivf":
        assert found == wanted


def test_one_writer_and_many_readers(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g")
    readers = [Gallery.open(tmp_path / "g") for _ in range(3)]
    before = [reader.search(X[1], k=5) for reader in readers]
    more, y = kinds(40, seed=9)
    new = [row | {"id": f"new {place}"} for place, row in enumerate(rows_of(y))]
    gallery.add_embeddings(new, more)
    assert [reader.search(X[1], k=5) for reader in readers] == before
    assert all(reader.refresh() for reader in readers)
    assert not any(reader.refresh() for reader in readers)
    assert {len(reader) for reader in readers} == {340}
    with GalleryFolder.open(tmp_path / "g").writing():
        for act in (
            lambda: gallery.remove([rows[0]["id"]]),
            lambda: gallery.adapt(),
            lambda: gallery.add_embeddings(new, more),
            lambda: gallery.use("1-trained"),
            lambda: gallery.label([rows[0]["id"]], ["x"]),
        ):
            with pytest.raises(GalleryBusyError, match="is being written to by process"):
                act()
        assert readers[0].search(X[1], k=5).rows_searched == 340


def test_vectors_of_another_network_are_refused(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 20)
    with pytest.raises(GalleryError, match="come from the embedder abc"):
        gallery.add_embeddings(rows, X, fingerprint="abc")
    with pytest.raises(InputError, match=r"embeddings must be \(20, 8\), one row for each chip; got \(20, 5\)"):
        gallery.add_embeddings(rows, X[:, :5])
    with pytest.raises(InputError, match="finite and not zero"):
        gallery.add_embeddings(rows, X * np.nan)
    with pytest.raises(InputError, match="row 1 has no id"):
        gallery.add_embeddings([rows[0], {}], X[:2])


def test_what_cannot_be_made_or_removed(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 20)
    with pytest.raises(GalleryError, match="is a gallery already"):
        Gallery.create(tmp_path / "g", dimension=8)
    with pytest.raises(InputError, match="needs the dimension"):
        Gallery.create(tmp_path / "h")
    with pytest.raises(InputError, match="the metric takes 3 numbers"):
        Gallery.create(tmp_path / "h", metric=Cosine().fit(np.ones((2, 3))), dimension=8)
    assert not (tmp_path / "h").exists()
    with pytest.raises(GalleryError, match="has no chip 'nobody'"):
        gallery.remove([rows[0]["id"], "nobody"])
    with pytest.raises(InputError, match="give `ids` or `where`"):
        gallery.remove()
    with pytest.raises(InputError, match="`ids` must be a list"):
        gallery.remove("chip")
    assert len(gallery) == 20
    with pytest.raises(GalleryError, match="no embedder"):
        gallery.add(tmp_path)
    with pytest.raises(GalleryError, match="no embedder"):
        gallery.search(np.zeros((8, 8, 3), np.uint8))


def test_a_metric_can_be_named_or_brought(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g")
    cosine = X @ X[3] / np.linalg.norm(X, axis=1) / np.linalg.norm(X[3])
    best = [rows[row]["id"] for row in np.argsort(-cosine)[:9]]
    assert [hit.id for hit in gallery.search(X[3], k=9, metric="cosine").hits] == best
    assert [hit.id for hit in gallery.search(X[3], k=9, metric=Cosine().fit(X)).hits] == best
    with pytest.raises(GalleryError, match="no metric 'cosinus'; it has 1-trained"):
        gallery.search(X[3], metric="cosinus")
    with pytest.raises(InputError, match="embeddings of 3 numbers"):
        gallery.search(X[3], metric=Cosine().fit(np.ones((2, 3))))


@pytest.mark.parametrize("kind", ["mixture", "indefinite"])
def test_a_metric_that_is_no_distance_is_scored_exactly_after_a_shortlist(tmp_path: Path, kind: str) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 500)
    other, y = kinds(400, seed=0)
    metric = (
        MixtureLikelihoodRatio(different=3).fit(other, y)
        if kind == "mixture"
        else GaussianLikelihoodRatio(indefinite="keep").fit(other, y)
    )
    scores = metric.score(X[2:3], X)[0]
    found = gallery.search(X[2], k=10, metric=metric)
    assert [hit.id for hit in found.hits] == [rows[row]["id"] for row in np.argsort(-scores)[:10]]
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1][:10], rtol=1e-5)
    metric.calibrate(other, y)
    accepted = gallery.search(X[2], false_alarm_rate=0.05, metric=metric)
    assert len(accepted) == (scores >= metric.threshold(0.05)).sum()


def test_metrics_can_be_gone_back_to(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    before = gallery.search(X[0], k=5)
    reader = Gallery.open(tmp_path / "g")
    assert reader.search(X[0], k=5) == before
    adapted = gallery.adapt(clusters=8)
    assert adapted.metric == "2-adapted"
    assert gallery.search(X[0], k=5).metric == "2-adapted"
    assert reader.search(X[0], k=5) == before
    reader.refresh()
    assert reader.search(X[0], k=5).metric == "2-adapted"
    gallery.use("1-trained")
    assert gallery.search(X[0], k=5) == before
    assert [metric.name for metric in gallery.metrics()] == ["1-trained", "2-adapted"]


def test_marks_outlive_a_second_adding_and_are_read_by_filters(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 40)
    ids = [row["id"] for row in rows]
    gallery.label(ids[:2], ["a 'new' kind", None], background=[ids[2]])
    gallery.add_embeddings(rows, X)
    found = gallery.search(X[0], where=Where(label="a 'new' kind"))
    assert [hit.id for hit in found.hits] == [ids[0]]
    assert [hit.id for hit in gallery.search(X[0], where=Where(background=True)).hits] == [ids[2]]
    stats = gallery.stats()
    assert (stats.marked, stats.background) == (2, 1)
    with pytest.raises(InputError, match="is named twice"):
        gallery.label([ids[0]], ["x"], background=[ids[0]])
    with pytest.raises(InputError, match="as many labels as ids"):
        gallery.label(ids[:2], ["x"])
    with pytest.raises(InputError, match="a label is a text or None, got ''"):
        gallery.label(ids[:1], [""])


def test_a_gallery_that_was_never_finished_is_made_again(tmp_path: Path) -> None:
    Gallery.create(tmp_path / "g", dimension=5)
    (tmp_path / "g" / "gallery.json").unlink()
    with pytest.raises(GalleryError, match=r"gallery\.json is missing"):
        Gallery.open(tmp_path / "g")
    X, y = kinds(200)
    gallery = Gallery.create(tmp_path / "g", metric=GaussianLikelihoodRatio().fit(X, y), dimension=8)
    assert [metric.name for metric in gallery.metrics()] == ["1-trained"]
    gallery.add_embeddings(rows_of(y), X)
    (tmp_path / "g" / "gallery.json").unlink()
    with pytest.raises(GalleryError, match=r"a table of 200 chips without its gallery\.json; restore"):
        Gallery.create(tmp_path / "g", dimension=8)


def test_stats_count_what_is_there(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g")
    stats = gallery.stats()
    assert stats.labelled == sum(row["label"] is not None for row in rows)
    assert stats.placed == sum(row["footprint"] is not None for row in rows)
    assert stats.scenes == len(SCENES)
    assert set(stats.sensors) == {"S2A", "S2'B"}
    assert (stats.first_time or "")[:7] == "2021-01"
    assert stats.bytes_on_disk > 300 * 8 * 4
    assert stats.embedder is None


def test_pairs_of_options_go_together(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    gallery.calibrate()
    names = ("expand", "rerank", "counter", "where", "rate")
    for first, second in itertools.combinations(names, 2):
        asked = {first, second}
        found = gallery.search(
            X[0],
            k=None if "rate" in asked else 7,
            false_alarm_rate=0.05 if "rate" in asked else None,
            expand=3 if "expand" in asked else 0,
            rerank="rerank" in asked,
            counter_examples=[X[1]] if "counter" in asked else (),
            where=Where(scene=list(SCENES[:2])) if "where" in asked else None,
        )
        assert len(found) == 7 or "rate" in asked
        assert len({hit.id for hit in found.hits}) == len(found)
        if "where" in asked:
            assert {hit.scene for hit in found.hits} <= set(SCENES[:2])


def test_of_many_windows_that_a_rate_accepts_only_the_best_are_read_and_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, X, rows = vector_gallery(tmp_path / "model", 600)
    gallery = Gallery.create(
        tmp_path / "g", metric=Gallery.open(tmp_path / "model").read_metric("1-trained"), dimension=8
    )
    for place, row in enumerate(rows):  # three windows of each object
        left = 1_000 * (place // 3)
        row["polygon"] = f"POLYGON (({left} 0, {left + 9} 0, {left + 9} 9, {left} 9, {left} 0))"
        row["scene"] = "one"
    gallery.add_embeddings(rows, np.repeat(X[:200], 3, axis=0))
    every = gallery.search(X[0], false_alarm_rate=0.5)
    assert len(every) > 60
    read: list[int] = []
    real = Snapshot.read

    def counting(self: Snapshot, rows: Any, columns: Any) -> Any:
        read.append(len(rows))
        return real(self, rows, columns)

    monkeypatch.setattr(Snapshot, "read", counting)
    some = gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.5), most=4)
    assert [hit.id for hit in some.hits] == [hit.id for hit in every.hits[:4]]
    assert [hit.merged for hit in some.hits] == [2] * 4
    assert max(read) < 50
    assert some.accepted + sum(hit.merged for hit in some.hits) <= 3 * len(every)
    assert some.accepted >= len(every)
    assert gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.5), most=len(every)).accepted == len(every)
    again = gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.5, rerank=True), most=4)
    assert len(again) == 4


def test_of_what_a_rate_accepts_the_best_can_be_asked_for(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    every = gallery.search(X[0], false_alarm_rate=0.2)
    assert (every.accepted, every.truncated) == (len(every), False)
    some = gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.2), most=4)
    assert (len(some), some.accepted, some.truncated) == (4, len(every), True)
    assert [hit.id for hit in some.hits] == [hit.id for hit in every.hits[:4]]
    assert some.expected_false_hits == every.expected_false_hits
    assert gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.2), most=10_000).accepted == len(every)
    assert gallery.answer(SearchRequest(examples=X[0], k=3), most=2).accepted == 3
    with pytest.raises(InputError, match="`most` must be at least 1"):
        gallery.answer(SearchRequest(examples=X[0], false_alarm_rate=0.2), most=0)


def test_a_text_from_a_stranger_is_never_a_file(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g")
    file = tmp_path / "example.png"
    file.touch()
    for query, counters in ((str(file), ()), (X[0], [str(file)]), ([X[0], str(file)], ())):
        with pytest.raises(GalleryError, match=r"has no chip '.*example\.png'"):
            gallery.answer(SearchRequest(examples=query, counter_examples=counters), files=False)
    with pytest.raises(InputError, match="not a path"):
        gallery.answer(SearchRequest(examples=file), files=False)
    assert len(gallery.answer(SearchRequest(examples=[rows[0]["id"], X[1]], k=3), files=False)) == 3
