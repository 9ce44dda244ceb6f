"""Whole runs: trained, killed, resumed, refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import save_file
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, LookdownError, OutputError, TrainingError
from lookdown.metrics import load_metric
from lookdown.networks import Embedder
from lookdown.networks.backbones import timm
from lookdown.training.evaluate_run import evaluate_run
from lookdown.training.recipe import Recipe
from lookdown.training.run_folder import RunFolder, write_checkpoint
from lookdown.training.train import Observer, resume, train

FILES = ("embedder/embedder.safetensors", "metric/metric.safetensors", "recipe.toml")
LONG = {"stage1": {"epochs": 6}, "stage2": {"epochs": 6}}
FINETUNED = {"trunk": "finetune", "stage1": {"epochs": 1}, "stage2": {"epochs": 1}}


class StopError(Exception):
    """Stands for a run that is stopped."""


def stop_after(epoch: int) -> Observer:
    """Return an observer that stops a run when an epoch is done."""

    def stop(record: dict[str, float | int]) -> None:
        if record["epoch"] == epoch:
            raise StopError

    return Observer(epoch=stop)


def stopped(made: Recipe, path: Path, epoch: int = 1) -> Path:
    """Begin a run, and leave it when an epoch is done."""
    with pytest.raises(StopError):
        train(made, path, stop_after(epoch))
    return path


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("changes", [{}, {"stage2": {"statistics": "running"}}, FINETUNED], ids=str)
def test_a_run_leaves_an_embedder_and_a_calibrated_metric(changes: dict[str, object], tmp_path: Path) -> None:
    told: list[str] = []
    run = train(recipe(**changes), tmp_path / "run", Observer(note=told.append))
    assert run.finished
    embedder, metric = Embedder.load(run.path / "embedder"), load_metric(run.path / "metric")
    chips = Manifest.read(world()).with_role("gallery")
    x = embedder.embed(chips.paths[:20])
    assert x.shape == (20, 8)
    assert metric.threshold(0.1).method == "empirical"
    history = run.history()
    assert [record["epoch"] for record in history] == list(range(1, len(history) + 1))
    assert all(0 < record["validation_map"] <= 1 for record in history)
    assert any("likelihood ratio" in sentence for sentence in told)
    assert json.loads((run.path / "run.json").read_text())["versions"]["lookdown"]


def test_the_same_recipe_gives_the_same_bits_and_another_seed_others(tmp_path: Path) -> None:
    first, again, other = (
        train(recipe(seed=seed), tmp_path / name).path for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert contents(first) == contents(again)
    assert contents(first)["embedder/embedder.safetensors"] != contents(other)["embedder/embedder.safetensors"]


@pytest.mark.parametrize(
    ("changes", "epochs"),
    [
        ({"trunk": "finetune", "stage1": {"epochs": 2}, "stage2": {"epochs": 1}}, (1, 2)),
        # A mixture asks for embeddings that tell classes apart already.
        ({"metric": {"kind": "mixture"}, "stage1": {"epochs": 8}, "stage2": {"statistics": "running"}}, (8, 9)),
    ],
    ids=["fine-tuned", "mixture, running"],
)
def test_stopped_after_an_epoch_it_goes_on_to_the_same_bits(
    changes: dict[str, object], epochs: tuple[int, ...], tmp_path: Path
) -> None:
    made = recipe(**changes)
    whole = train(made, tmp_path / "whole")
    for epoch in epochs:
        path = stopped(made, tmp_path / f"stopped {epoch}", epoch)
        assert contents(resume(path).path) == contents(whole.path)


def test_a_run_can_be_moved_on_and_used_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(world(), tmp_path / "world")
    trunk = timm.create_model("mobilenetv2_035").state_dict()
    save_file(trunk, tmp_path / "trunk.safetensors")
    monkeypatch.chdir(tmp_path)
    made = recipe(data={"manifest": "world"}, network={"weights": "trunk.safetensors"})
    stopped(made, Path("run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(Path("../run")).finished
    assert evaluate_run(Path("../run")).evaluations


def test_another_trunk_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trunk.safetensors"
    trunk = timm.create_model("mobilenetv2_035").state_dict()
    save_file(trunk, file)
    path = stopped(recipe(network={"weights": str(file)}), tmp_path / "run")
    save_file({**trunk, "conv_stem.weight": trunk["conv_stem.weight"] + 1}, file)
    with pytest.raises(
        OutputError, match=r"the trunk has changed since .*run was started: .*trunk.safetensors gives other"
    ):
        resume(path)
    save_file(trunk, file)
    assert resume(path).finished


def test_a_run_that_diverges_goes_on_with_another_rate(tmp_path: Path) -> None:
    """One batch an epoch: the loss and its gradient are numbers, and the step along it leads out of all of them."""
    made = recipe(batches={"classes": 16, "samples": 12}, stage1={"learning_rate": 1e38}, stage2={"epochs": 1})
    message = r"an embedding of the held-out places is not a number in stage 1, epoch 1; .*--set stage1.learning_rate="
    with pytest.raises(TrainingError, match=message):
        train(made, tmp_path / "run")
    with pytest.raises(InputError, match=r"start a new run with another stage1\.epochs"):
        resume(tmp_path / "run", changes=["stage1.epochs=1"])
    run = resume(tmp_path / "run", changes=["stage1.learning_rate=0.01"])
    assert run.finished
    assert RunFolder.open(run.path).recipe.stage1.learning_rate == 0.01
    assert json.loads((run.path / "run.json").read_text())["changes"][0]["after epoch"] == 0
    with pytest.raises(OutputError, match="is finished, so it cannot be changed"):
        resume(run.path, changes=["stage1.learning_rate=0.02"])


@pytest.mark.kill
@pytest.mark.parametrize("epoch", [1, 3])
def test_killed_between_line_and_checkpoint_each_epoch_has_one_line(
    epoch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(folder: Path, number: int, *more: Any) -> None:
        if number == epoch:
            raise StopError
        write_checkpoint(folder, number, *more)

    monkeypatch.setattr("lookdown.training.train.write_checkpoint", killed)
    with pytest.raises(StopError):
        train(recipe(), tmp_path / "run")
    monkeypatch.undo()
    assert [record["epoch"] for record in RunFolder.open(tmp_path / "run").history()] == list(range(1, epoch + 1))
    run = resume(tmp_path / "run")
    assert [record["epoch"] for record in run.history()] == [1, 2, 3, 4]
    assert contents(run.path) == contents(train(recipe(), tmp_path / "whole").path)


@pytest.mark.kill
def test_killed_while_the_embedder_is_replaced_it_goes_on(tmp_path: Path) -> None:
    run = train(recipe(), tmp_path / "run")
    before = contents(run.path)
    shutil.rmtree(run.path / "metric")
    (run.path / "embedder").rename(run.path / ".embedder.old")
    assert contents(resume(run.path).path) == before


def test_a_frozen_trunk_sees_the_chips_where_training_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def frozen_features(embedder: Embedder, *_: object, **__: object) -> None:
        raise StopError(embedder.mean.device.type, next(embedder.trunk.parameters()).device.type)

    monkeypatch.setattr("lookdown.training.training_data.frozen_features", frozen_features)
    monkeypatch.setattr(Fabric, "device", torch.device("meta"))
    with pytest.raises(StopError, match=r"'meta', 'meta'"):
        train(recipe(), tmp_path / "run")


def work(made: Recipe, path: Path) -> None:
    """Train or go on, as a process of its own that may be killed."""
    torch.set_num_threads(1)
    if (path / "run.json").is_file():
        resume(path)
    else:
        train(made, path)


@pytest.mark.kill
@pytest.mark.parametrize("changes", [LONG, {**LONG, "stage2": {"epochs": 6, "statistics": "running"}}], ids=str)
def test_killed_fifteen_times_it_ends_with_the_same_bits(changes: dict[str, object], tmp_path: Path) -> None:
    made = recipe(**changes)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lookdown.training.train", "lookdown.networks"])

    def start(path: Path) -> multiprocessing.process.BaseProcess:
        process = context.Process(target=work, args=(made, path))
        process.start()
        return process

    for name in ("first", "whole"):  # the first one waits for imports, too
        begin = time.perf_counter()
        whole = start(tmp_path / name)
        whole.join(120)
        takes = time.perf_counter() - begin
        assert whole.exitcode == 0
    chance, kills, runs = random.Random(0), 0, 0
    while kills < 15:
        assert runs < 15, "runs end before they can be killed"
        path = tmp_path / f"killed {runs}"
        while True:
            process = start(path)
            process.join(chance.uniform(0.1, 0.8) * takes)
            if process.exitcode is not None:
                break
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
        assert process.exitcode == 0
        assert contents(path) == contents(tmp_path / "whole")
        runs += 1


def test_a_finished_run_is_left_alone_and_other_data_are_refused(tmp_path: Path) -> None:
    data = tmp_path / "world"
    shutil.copytree(world(), data)
    made = recipe(data={"manifest": str(data), "held_out": 0.3})
    run = train(made, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    resume(run.path)
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    shutil.rmtree(run.path / "metric")
    chip = Manifest.read(data).with_role("train").paths[0]
    chip.write_bytes(chip.read_bytes() + b"\0")
    with pytest.raises(OutputError, match=r"has changed since .* was started: .* or the times of files"):
        resume(run.path)
    with pytest.raises(OutputError, match="--resume"):
        train(made, run.path)


def test_what_cannot_be_trained_on_is_said_before_anything_is_written(tmp_path: Path) -> None:
    manifest = Manifest.read(world())
    gallery = manifest.with_role("gallery")
    gallery.write(tmp_path / "gallery.parquet")
    with pytest.raises(InputError, match="has no chips to train on"):
        train(recipe(data={"manifest": str(tmp_path / "gallery.parquet")}), tmp_path / "run")
    unnamed = manifest.table.set_column(
        manifest.table.schema.get_field_index("label"), "label", [[None] * len(manifest)]
    )
    Manifest(unnamed, manifest.root).write(tmp_path / "unnamed.parquet")
    with pytest.raises(InputError, match="without a class"):
        train(recipe(data={"manifest": str(tmp_path / "unnamed.parquet")}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": {"backbone": "resnet5000"}}, "backbone 'resnet5000' is not known to timm"),
        ({"network": {"weights": "missing.safetensors"}}, "missing.safetensors is not there"),
        ({"network": {"size": 4}}, "size must be a whole number from 8"),
        ({"data": {"held_out": 0.001}}, "cannot be held out"),
        pytest.param(
            {"device": "cuda"},
            'device = "cuda" is not available on this machine',
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_a_recipe_that_cannot_be_used_leaves_no_folder(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(LookdownError, match=message):
        train(recipe(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.kill
def test_a_disk_that_is_too_small_is_told_before_the_first_epoch(small_disk: Path) -> None:
    epochs: list[object] = []
    with pytest.raises(OutputError, match=r"needs about \d+\.\d MB for checkpoints and embedder, and the disk has"):
        train(recipe(**FINETUNED), small_disk / "run", Observer(epoch=epochs.append))
    assert not epochs


@pytest.mark.kill
def test_a_disk_that_fills_up_stops_the_run_which_goes_on_to_the_same_bits(small_disk: Path, tmp_path: Path) -> None:
    made = recipe(**{**LONG, "network": {"head": "linear"}})
    whole = train(made, tmp_path / "whole")
    filler = small_disk / "other"

    def fill(record: dict[str, float | int]) -> None:
        if record["epoch"] == 3:
            filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 4096))

    path = small_disk / "run"
    # Only the head is written before the end, so the check at the start is met with a disk of this size.
    monkeyed = Observer(epoch=fill)
    with pytest.raises(
        OutputError, match="free the disk, then `lookdown train --resume`; the checkpoint before it is still good"
    ):
        train(made, path, monkeyed)
    filler.unlink()
    resume(path)
    assert contents(path) == contents(whole.path)


def test_a_bad_chip_is_left_out_and_named(tmp_path: Path) -> None:
    data = tmp_path / "world"
    shutil.copytree(world(), data)
    bad = Manifest.read(data).with_role("train").paths[3]
    bad.write_bytes(b"no picture")
    for trunk in ("frozen", "finetune"):
        told: list[str] = []
        made = recipe(
            data={"manifest": str(data), "held_out": 0.3}, trunk=trunk, stage1={"epochs": 1}, stage2={"epochs": 0}
        )
        train(made, tmp_path / trunk, Observer(note=told.append))
        assert any("1 chips could not be read" in sentence and bad.name in sentence for sentence in told)


def test_more_epochs_find_more(tmp_path: Path) -> None:
    history = train(recipe(stage1={"epochs": 8}, views=4), tmp_path / "run").history()
    assert history[-1]["loss"] > 0
    assert np.mean([record["accuracy"] for record in history[5:8]]) > history[0]["accuracy"]
