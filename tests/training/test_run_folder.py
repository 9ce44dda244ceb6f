"""The folder of a run: checkpoints, whole or passed over; curves, read back by TensorBoard itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError, RecipeError
from lookdown.training.run_folder import RunFolder, TensorBoard, data_fingerprint, last_checkpoint, write_checkpoint
from lookdown.training.train import train


def test_it_comes_back_as_it_was_begun(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
    assert RunFolder.open(tmp_path / "run") == made
    assert not made.finished
    with pytest.raises(OutputError, match=r"exists; .*--resume"):
        RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
    with pytest.raises(OutputError, match="is not a run of `lookdown train`"):
        RunFolder.open(tmp_path)


class KilledError(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("renamed", [0, 1])
def test_one_killed_while_it_began_can_begin_again(
    renamed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, left = Path.replace, renamed

    def until_killed(file: Path, target: Path) -> Path:
        nonlocal left
        if not left:
            raise KilledError
        left -= 1
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", until_killed)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process cleans up nothing
    with pytest.raises(KilledError):
        RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
    monkeypatch.undo()
    assert any((tmp_path / "run").iterdir())
    made = RunFolder.create(tmp_path / "run", recipe(seed=3), "data", "trunk")
    assert RunFolder.open(tmp_path / "run") == made
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["recipe.toml", "run.json"]


def test_what_is_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "recipe.toml").write_text("seed = 3")
    (tmp_path / "file").write_text("")
    for name in ("own", "file"):
        with pytest.raises(OutputError, match="exists; name another folder"):
            RunFolder.create(tmp_path / name, recipe(), "data", "trunk")
    assert (tmp_path / "own" / "recipe.toml").read_text() == "seed = 3"


def test_rates_and_clip_can_be_changed_on_the_way_and_nothing_else(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
    settings = ["stage1.learning_rate=0.01", "optimizer.clip=1"]
    changed = run.changed(settings)
    assert (changed.recipe.stage1.learning_rate, changed.recipe.optimizer.clip) == (0.01, 1.0)
    assert RunFolder.open(run.path) == run
    changed.keep_change(settings, after=4)
    changed.changed(["stage2.learning_rate=0.001"]).keep_change(["stage2.learning_rate=0.001"], after=6)
    assert json.loads((run.path / "run.json").read_text())["changes"] == [
        {"after epoch": 4, "set": settings},
        {"after epoch": 6, "set": ["stage2.learning_rate=0.001"]},
    ]
    again = RunFolder.open(run.path).recipe
    assert (again.stage1.learning_rate, again.stage2.learning_rate, again.optimizer.clip) == (0.01, 0.001, 1.0)
    for setting in ("seed=3", "stage1.epochs=7", "stage1={learning_rate=0.1}", "nonsense"):
        with pytest.raises(
            InputError, match=r"only stage1.learning_rate, .* can be changed after its start; start a new"
        ):
            run.changed([setting])
    with pytest.raises(RecipeError, match="learning_rate"):
        run.changed(["stage1.learning_rate=fast"])


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
    (run.path / "metrics.jsonl").mkdir()
    (run.path / "metrics.jsonl" / "something").write_text("")
    (run.path / "validation.json").mkdir()
    writes: list[Callable[[], None]] = [
        lambda: run.log({"epoch": 1}),
        lambda: run.forget_after(0),
        lambda: run.write("validation.json", "{}"),
    ]
    for write in writes:
        with pytest.raises(OutputError, match=r"cannot be written: .*; free the disk, then `lookdown train --resume"):
            write()


def test_what_was_logged_after_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe(), "data", "trunk")
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
from lookdown.training.run_folder import TensorBoard
curves = TensorBoard(Path({str(tmp_path / "curves")!r}), after=0)
curves.log({{"epoch": 1, "loss": 1.0}})
curves.close()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert not (tmp_path / "curves").exists()


def written(folder: Path, epoch: int) -> None:
    write_checkpoint(folder, epoch, {"weight": torch.full((3,), float(epoch))}, {"stage": 1})


def test_the_latest_comes_back_and_two_are_kept(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "none") is None
    for epoch in range(1, 5):
        written(tmp_path, epoch)
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.epoch == 4
    assert found.state == {"stage": 1}
    torch.testing.assert_close(found.tensors["weight"], torch.full((3,), 4.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "epoch-00003.json", "epoch-00003.safetensors", "epoch-00004.json", "epoch-00004.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["truncated", "flipped", "gone", "no json", "half json"])
def test_a_damaged_one_is_passed_over(tmp_path: Path, damage: str) -> None:
    written(tmp_path, 1)
    written(tmp_path, 2)
    tensors, description = tmp_path / "epoch-00002.safetensors", tmp_path / "epoch-00002.json"
    content = tensors.read_bytes()
    if damage == "truncated":
        tensors.write_bytes(content[:-4])
    elif damage == "flipped":
        tensors.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "gone":
        tensors.unlink()
    elif damage == "no json":
        description.unlink()
    else:
        description.write_text(description.read_text()[:20])
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.epoch == 1


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"epoch-00003 cannot be written: .* --resume"):
        written(tmp_path / "file", 3)
