"""Machines by an option, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tests.gallery.scale.ray_nodes  # noqa: F401  # says, before Ray is imported, that all is on loopback
from PIL import Image
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import WorkersError
from lookdown.gallery import Gallery


def run(*typed: object) -> str:
    found = CliRunner().invoke(app, [*map(str, typed)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def archive(folder: Path, chips: int) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(chips):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(folder / f"{number:02}.png")
    return folder


@pytest.mark.server
def test_ray_on_this_machine_indexes_and_adapts_as_the_process_does(tmp_path: Path) -> None:
    images = archive(tmp_path / "chips", 60)
    network = ("--embedder", "tf_efficientnet_lite0", "--dimension", 4)
    told = json.loads(run("index", images, "-o", tmp_path / "one", *network, "--json"))
    also = json.loads(run("index", images, "-o", tmp_path / "two", *network, "--workers", "ray", "--json"))
    assert told | {"gallery": ""} == also | {"gallery": ""}
    one, two = (Gallery.open(tmp_path / name).snapshot for name in ("one", "two"))
    np.testing.assert_allclose(two.embeddings(), one.embeddings(), rtol=1e-4, atol=1e-4)
    learnt = [
        json.loads(run("gallery", "adapt", tmp_path / "one", "--clusters", 5, "--method", "cplfpa", "--json", *how))
        for how in ((), ("--workers", "ray"))
    ]
    assert learnt[0]["reason"] == learnt[1]["reason"]


def test_a_cluster_that_is_nowhere_is_told_and_the_gallery_can_be_filled_later(tmp_path: Path) -> None:
    images = archive(tmp_path / "chips", 5)
    typed = ("index", images, "-o", tmp_path / "g", "--embedder", "tf_efficientnet_lite0", "--dimension", 2)
    with pytest.raises(WorkersError, match=r"Ray at 127\.0\.0\.1:1 cannot be had: Connection refused; start it"):
        run(*typed, "--workers", "127.0.0.1:1")
    assert "5 chips added" in run(*typed)
