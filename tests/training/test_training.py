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

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.metrics import load_metric
from lookdown.networks import Embedder
from lookdown.training import training
from lookdown.training.recipe import Recipe

FILES = ("embedder/embedder.safetensors", "metric/metric.safetensors", "recipe.toml")
LONG = {"stage1": {"epochs": 6}, "stage2": {"epochs": 6}}
FINETUNED = {"trunk": "finetune", "stage1": {"epochs": 1}, "stage2": {"epochs": 1}}


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("changes", [{}, {"stage2": {"statistics": "running"}}, FINETUNED], ids=str)
def test_a_run_leaves_an_embedder_and_a_calibrated_metric(changes: dict[str, object], tmp_path: Path) -> None:
    told: list[str] = []
    run = training.train(recipe(**changes), tmp_path / "run", training.Observer(note=told.append))
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
        training.train(recipe(seed=seed), tmp_path / name).path for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert contents(first) == contents(again)
    assert contents(first)["embedder/embedder.safetensors"] != contents(other)["embedder/embedder.safetensors"]


def work(made: Recipe, path: Path) -> None:
    """Train or go on, as a process of its own that may be killed."""
    import torch

    torch.set_num_threads(1)
    if (path / "run.json").is_file():
        training.resume(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
        training.train(made, path)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [LONG, {**LONG, "stage2": {"epochs": 6, "statistics": "running"}}], ids=str)
def test_killed_fifteen_times_it_ends_with_the_same_bits(changes: dict[str, object], tmp_path: Path) -> None:
    made = recipe(**changes)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lookdown.training.training", "lookdown.networks"])

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
    run = training.train(made, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    training.resume(run.path)
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    shutil.rmtree(run.path / "metric")
    chip = Manifest.read(data).with_role("train").paths[0]
    chip.write_bytes(chip.read_bytes() + b"\0")
    with pytest.raises(OutputError, match=r"is not what .* was begun with"):
        training.resume(run.path)
    with pytest.raises(OutputError, match="--resume"):
        training.train(made, run.path)


def test_what_cannot_be_trained_on_is_said_before_anything_is_written(tmp_path: Path) -> None:
    manifest = Manifest.read(world())
    gallery = manifest.with_role("gallery")
    gallery.write(tmp_path / "gallery.parquet")
    with pytest.raises(InputError, match="has no chips to train on"):
        training.train(recipe(data={"manifest": str(tmp_path / "gallery.parquet")}), tmp_path / "run")
    unnamed = manifest.table.set_column(
        manifest.table.schema.get_field_index("label"), "label", [[None] * len(manifest)]
    )
    Manifest(unnamed, manifest.root).write(tmp_path / "unnamed.parquet")
    with pytest.raises(InputError, match="without a class"):
        training.train(recipe(data={"manifest": str(tmp_path / "unnamed.parquet")}), tmp_path / "run")
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


def test_a_disk_that_is_too_small_is_told_before_the_first_epoch(small_disk: Path) -> None:
    epochs: list[object] = []
    with pytest.raises(OutputError, match=r"needs about \d+\.\d MB for checkpoints and embedder, and the disk has"):
        training.train(recipe(**FINETUNED), small_disk / "run", training.Observer(epoch=epochs.append))
    assert not epochs


def test_a_disk_that_fills_up_stops_the_run_which_goes_on_to_the_same_bits(small_disk: Path, tmp_path: Path) -> None:
    made = recipe(**{**LONG, "network": {"head": "linear"}})
    whole = training.train(made, tmp_path / "whole")
    filler = small_disk / "other"

    def fill(record: dict[str, float | int]) -> None:
        if record["epoch"] == 3:
            filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 4096))

    path = small_disk / "run"
    # Only the head is written before the end, so the check at the start is met with a disk of this size.
    monkeyed = training.Observer(epoch=fill)
    with pytest.raises(OutputError, match="free the disk, then `lookdown train --resume`; the one before it is still"):
        training.train(made, path, monkeyed)
    filler.unlink()
    training.resume(path)
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
        training.train(made, tmp_path / trunk, training.Observer(note=told.append))
        assert any("1 chips could not be read" in sentence and bad.name in sentence for sentence in told)


def test_more_epochs_find_more(tmp_path: Path) -> None:
    history = training.train(recipe(stage1={"epochs": 8}, views=4), tmp_path / "run").history()
    assert history[-1]["loss"] > 0
    assert np.mean([record["accuracy"] for record in history[5:8]]) > history[0]["accuracy"]
