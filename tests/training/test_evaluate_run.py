"""A trained run on its queries and gallery."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import ImageError, InputError, OutputError
from lookdown.evaluation import evaluate
from lookdown.metrics import Cosine
from lookdown.networks import Embedder
from lookdown.training.evaluate_run import UnreadableChips, evaluate_run
from lookdown.training.run_folder import RunFolder
from lookdown.training.train import train


def test_it_searches_the_gallery_by_each_metric(tmp_path: Path) -> None:
    run = train(recipe(), tmp_path / "run")
    calls: list[tuple[Any, ...]] = []
    made = evaluate_run(run.path, ("cosine", "euclidean", "glrt"), progress=lambda *call: calls.append(call))
    found = made.evaluations
    assert list(found) == ["cosine", "euclidean", "glrt"]
    assert made.unreadable == UnreadableChips(queries=0, gallery=0, first=None)
    manifest = Manifest.read(world())
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    assert calls[-1] == (len(asked) + len(searched), len(asked) + len(searched), "chips")
    embedder = Embedder.load(run.path / "embedder")
    queries, gallery = embedder.embed(asked), embedder.embed(searched)
    expected = evaluate(
        Cosine().fit(gallery), queries, asked.labels, gallery, searched.labels, searched.background, groups=asked.groups
    )
    assert found["cosine"] == expected
    assert -1 < found["glrt"].difference(found["cosine"]) < 1


def test_chips_that_cannot_be_read_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    run = train(recipe(stage2={"epochs": 0}), tmp_path / "run")
    shutil.copytree(world(), tmp_path / "world", ignore=shutil.ignore_patterns("features"))
    manifest = Manifest.read(tmp_path / "world")
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    for path in (*asked.paths[:2], *searched.paths[:3]):
        path.write_bytes(b"no picture")
    found = evaluate_run(run.path, data=tmp_path / "world")
    assert (found.unreadable.queries, found.unreadable.gallery) == (2, 3)
    assert asked.paths[0].name in str(found.unreadable.first)
    assert found.evaluations["glrt"].gallery_size == len(searched) - 3
    for path in searched.paths:
        path.write_bytes(b"no picture")
    with pytest.raises(ImageError, match=f"2 queries and {len(searched)} chips of the gallery could not be read"):
        evaluate_run(run.path, data=tmp_path / "world")


def test_chips_are_embedded_on_the_device_of_the_recipe_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(recipe(stage2={"epochs": 0}), tmp_path / "run")
    asked: list[str] = []

    class MovedError(Exception):
        """To go no further: what is on `meta` cannot be embedded."""

    def nearest(wanted: str) -> torch.device:
        asked.append(wanted)
        return torch.device("meta")

    def embed_chips(embedder: Embedder, *_: object, **__: object) -> None:
        raise MovedError(embedder.mean.device.type)

    monkeypatch.setattr("lookdown.training.evaluate_run.nearest_device", nearest)
    monkeypatch.setattr(Embedder, "embed_chips", embed_chips)
    with pytest.raises(MovedError, match="meta"):
        evaluate_run(run.path)
    assert asked == ["cpu"]


def test_what_is_not_ready_is_refused(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "begun", recipe(), "data", "trunk")
    with pytest.raises(OutputError, match="is not finished; go on with"):
        evaluate_run(tmp_path / "begun")
    run = train(recipe(stage2={"epochs": 0}), tmp_path / "run")
    Manifest.read(world()).with_role("train").write(tmp_path / "train.parquet")
    with pytest.raises(InputError, match="no queries or no gallery"):
        evaluate_run(run.path, data=tmp_path / "train.parquet")
