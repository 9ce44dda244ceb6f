"""The folder of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import OutputError
from lookdown.training.run_folder import RunFolder, data_fingerprint


def test_it_comes_back_as_it_was_begun(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path / "run", recipe(), "data")
    assert RunFolder.open(tmp_path / "run") == made
    assert not made.finished
    with pytest.raises(OutputError, match=r"is there already; .*--resume"):
        RunFolder.create(tmp_path / "run", recipe(), "data")
    with pytest.raises(OutputError, match="is no run of `lookdown train`"):
        RunFolder.open(tmp_path)


def test_what_was_logged_after_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe(), "data")
    for epoch in (1, 2, 3):
        run.log({"epoch": epoch, "loss": 0.5})
    with (run.path / "metrics.jsonl").open("a") as lines:
        lines.write('{"epoch": 4, "lo')
    run.forget_after(2)
    assert [record["epoch"] for record in run.history()] == [1, 2]


def test_other_data_has_another_fingerprint() -> None:
    manifest = Manifest.read(world())
    assert data_fingerprint(manifest) == data_fingerprint(Manifest.read(world()))
    assert data_fingerprint(manifest) != data_fingerprint(manifest.with_role("train"))
