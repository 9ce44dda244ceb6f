"""A trained run, adapted to another world."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown import adapt, load_metric
from lookdown.adaptation.adapt_run import adapt_run
from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.networks import Embedder
from lookdown.training.train import train


@lru_cache
def trained() -> Path:
    return train(recipe(), Path(mkdtemp()) / "run").path


@lru_cache
def other_world() -> Path:
    folder = Path(mkdtemp()) / "other"
    draw_world(World(kinds="aircraft", chips=12, size=32, shift=0.8), folder)
    return folder


def test_it_is_adapt_on_the_embeddings_of_what_is_searched() -> None:
    found = adapt_run(trained(), other_world(), clusters=6, method="cplfpa").adaptation
    chips = Manifest.read(other_world()).with_role("query", "gallery")
    X = Embedder.load(trained() / "embedder").embed(chips.paths)
    expected = adapt(load_metric(trained() / "metric"), X, clusters=6, method="cplfpa")
    assert np.array_equal(found.metric.score(X[:9], X), expected.metric.score(X[:9], X))
    assert found.metric.calibration_ is None


def test_chips_are_clustered_by_the_mean_of_their_turns_unless_in_a_hurry() -> None:
    chips = Manifest.read(other_world()).with_role("query", "gallery")
    embedder = Embedder.load(trained() / "embedder")
    X, steady = embedder.embed(chips.paths), embedder.embed(chips.paths, turns=4)
    old = load_metric(trained() / "metric")
    for quick, by in ((False, steady), (True, X)):
        found = adapt_run(trained(), other_world(), clusters=6, quick=quick).adaptation
        expected = adapt(old, X, clusters=6, cluster_by=by)
        assert found.separation == expected.separation
        assert np.array_equal(found.metric.score(X[:9], X), expected.metric.score(X[:9], X))


def test_labels_are_read_only_when_asked_for() -> None:
    without = adapt_run(trained(), other_world(), clusters=6, method="cplfpa").adaptation
    with_labels = adapt_run(trained(), other_world(), clusters=6, method="cplfpa", labels=True).adaptation
    assert "true labels" in with_labels.reason
    assert "true labels" not in without.reason


def test_a_manifest_without_labels_is_enough_and_asking_for_them_is_refused(tmp_path: Path) -> None:
    manifest = Manifest.read(other_world())
    place = manifest.table.schema.get_field_index("label")
    Manifest(manifest.table.set_column(place, "label", [[None] * len(manifest)]), manifest.root).write(
        tmp_path / "bare.parquet"
    )
    assert adapt_run(trained(), tmp_path / "bare.parquet", clusters=6, method="cplfpa").adaptation.clusters == 6
    with pytest.raises(InputError, match=r"bare.parquet has no labels; omit `labels`"):
        adapt_run(trained(), tmp_path / "bare.parquet", labels=True)


def test_what_cannot_be_read_is_left_out_and_what_is_no_run_refused(tmp_path: Path) -> None:
    manifest = Manifest.read(world())
    chip = tmp_path / "chip.png"
    chip.write_bytes(b"no picture")
    rows = manifest.with_role("gallery").table.to_pylist()
    rows[0]["path"] = "chip.png"
    for row in rows[1:]:
        target = tmp_path / row["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((manifest.root / row["path"]).read_bytes())
    Manifest.of_rows(rows, tmp_path).write(tmp_path / "some.parquet")
    found = adapt_run(trained(), tmp_path / "some.parquet", clusters=4, method="cplfpa")
    assert list(found.skipped) == [0]
    with pytest.raises(OutputError, match="is not a run of `lookdown train`"):
        adapt_run(tmp_path, world())


def test_a_run_that_is_under_way_is_refused(tmp_path: Path) -> None:
    shutil.copytree(trained(), tmp_path / "run")
    (tmp_path / "run" / "metric" / "metric.json").unlink()
    with pytest.raises(OutputError, match="is not finished; go on with `lookdown train --resume"):
        adapt_run(tmp_path / "run", other_world())
