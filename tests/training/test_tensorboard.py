"""Curves for TensorBoard, read back by TensorBoard itself."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.training.runs import recipe

from lookdown.training.tensorboard import TensorBoard
from lookdown.training.train import train


def points(folder: Path, name: str) -> list[tuple[int, float]]:
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = loading.EventAccumulator(str(folder))
    read.Reload()
    return [(event.step, event.value) for event in read.Scalars(name)]


def begun(folder: Path, after: int, second: int, patch: pytest.MonkeyPatch) -> TensorBoard:
    """Begin or go on at a second of its own, as processes do: TensorBoard reads files in the order of theirs."""
    now = time.time
    with patch.context() as later:
        later.setattr(time, "time", lambda: now() + second)
        return TensorBoard(folder, after=after)


def test_a_run_that_went_on_after_an_epoch_shows_each_epoch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for after, value in ((0, 1.0), (2, 2.0)):
        curves = begun(tmp_path, after, int(value), monkeypatch)
        for epoch in range(after + 1, 5):
            curves.log({"epoch": epoch, "loss": value})
        curves.close()
    assert points(tmp_path, "loss") == [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)]


def test_one_killed_after_its_first_point_shows_that_epoch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (1.0, 2.0):
        curves = begun(tmp_path, 0, int(value), monkeypatch)
        curves.log({"epoch": 1, "loss": value})
        curves.close()
    assert points(tmp_path, "loss") == [(1, 2.0)]


def test_a_run_leaves_its_curves(tmp_path: Path) -> None:
    run = train(recipe(), tmp_path / "run")
    for name in ("loss", "accuracy", "validation_map"):
        assert [step for step, _ in points(run.path / "tensorboard", name)] == [1, 2, 3, 4]
        written = [record[name] for record in run.history()]
        assert [value for _, value in points(run.path / "tensorboard", name)] == pytest.approx(written)


def test_without_tensorboard_nothing_is_written(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["tensorboard"] = None
from pathlib import Path
from lookdown.training.tensorboard import TensorBoard
curves = TensorBoard(Path({str(tmp_path / "curves")!r}), after=0)
curves.log({{"epoch": 1, "loss": 1.0}})
curves.close()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert not (tmp_path / "curves").exists()
