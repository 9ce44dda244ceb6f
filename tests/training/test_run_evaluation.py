"""A trained run on its queries and gallery."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.evaluation import evaluate
from lookdown.metrics import Cosine
from lookdown.networks import Embedder
from lookdown.training import training
from lookdown.training.run_evaluation import evaluate_run
from lookdown.training.run_folder import RunFolder


def test_it_searches_the_gallery_by_each_metric(tmp_path: Path) -> None:
    run = training.train(recipe(), tmp_path / "run")
    calls: list[tuple[int, int]] = []
    found = evaluate_run(run.path, ("cosine", "euclidean", "glrt"), progress=lambda *call: calls.append(call))
    assert list(found) == ["cosine", "euclidean", "glrt"]
    manifest = Manifest.read(world())
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    assert calls[-1] == (len(asked) + len(searched),) * 2
    embedder = Embedder.load(run.path / "embedder")
    queries, gallery = embedder.embed(asked), embedder.embed(searched)
    expected = evaluate(
        Cosine().fit(gallery), queries, asked.labels, gallery, searched.labels, searched.background, groups=asked.groups
    )
    assert found["cosine"] == expected
    assert -1 < found["glrt"].difference(found["cosine"]) < 1


def test_what_is_not_ready_is_refused(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "begun", recipe(), "data")
    with pytest.raises(OutputError, match="is not finished; go on with"):
        evaluate_run(tmp_path / "begun")
    run = training.train(recipe(stage2={"epochs": 0}), tmp_path / "run")
    Manifest.read(world()).with_role("train").write(tmp_path / "train.parquet")
    with pytest.raises(InputError, match="no queries or no gallery"):
        evaluate_run(run.path, data=tmp_path / "train.parquet")
