"""Exports on disk: read, copied, used as an embedder is, and refused where they are damaged or none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.networks.exports import RUNTIMES, chips, network, owner

from lookdown.errors import ImageError, InputError, StoredEmbedderError
from lookdown.networks import Embedder, ExportedEmbedder
from lookdown.networks.exported_embedder import read_description
from lookdown.networks.runtimes import FILES, RuntimeName

pytestmark = pytest.mark.export


def copied(folder: Path, name: str = "openvino") -> Path:
    shutil.copytree(owner() / "exported" / name, folder / name)
    return folder / name


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_embeds_whatever_an_embedder_embeds(tmp_path: Path, runtime: RuntimeName) -> None:
    made = Embedder.load(owner() / "exported" / runtime)
    assert isinstance(made, ExportedEmbedder)
    images = chips(9)
    paths = [tmp_path / f"{place}.png" for place in range(9)]
    for path, pixels in zip(paths, images, strict=True):
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    wanted = network().embed(images)
    for given in (images, torch.from_numpy(images), paths, images[:, :, :, ::-1][:, :, :, ::-1]):
        np.testing.assert_allclose(made.embed(given, batch_size=4), wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(made.embed(images, turns=4), network().embed(images, turns=4), rtol=1e-3, atol=1e-4)
    paths[3].write_text("no image")
    found = made.embed_chips(paths)
    assert found.indices.tolist() == [0, 1, 2, 4, 5, 6, 7, 8]
    assert list(found.skipped) == [3]
    with pytest.raises(ImageError, match="1 of 9 images could not be read"):
        made.embed(paths)
    with pytest.raises(InputError, match="this embedder takes 32 x 32"):
        made.embed(chips(2, 16))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_copy_is_the_same_and_nothing_is_replaced_unasked(tmp_path: Path, runtime: RuntimeName) -> None:
    made = ExportedEmbedder.load(owner() / "exported" / runtime)
    made.save(tmp_path / "copy")
    twin = ExportedEmbedder.load(tmp_path / "copy")
    assert twin.description == made.description
    np.testing.assert_array_equal(twin.embed(chips(3)), made.embed(chips(3)))
    with pytest.raises(StoredEmbedderError, match="copy exists"):
        made.save(tmp_path / "copy")
    made.save(tmp_path / "copy", overwrite=True)
    (tmp_path / "copy" / "mine.txt").write_text("mine")
    with pytest.raises(StoredEmbedderError, match="holds other files as well"):
        made.save(tmp_path / "copy", overwrite=True)
    assert (tmp_path / "copy" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_damage_is_refused_by_name(tmp_path: Path, runtime: RuntimeName) -> None:
    for name in (*FILES[runtime], "export.json"):
        for damage in (lambda content: content[:-7], lambda content: content.replace(b"3", b"4"), lambda content: b""):
            folder = copied(tmp_path, runtime)
            file = folder / name
            file.write_bytes(damage(file.read_bytes()))
            with pytest.raises(StoredEmbedderError, match=str(folder)):
                ExportedEmbedder.load(folder)
            shutil.rmtree(folder)
    for name in FILES[runtime]:
        folder = copied(tmp_path, runtime)
        (folder / name).unlink()
        with pytest.raises(StoredEmbedderError, match=f"{folder / name} cannot be read"):
            ExportedEmbedder.load(folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "another"}, "does not describe an export"),
        ({"version": 99}, "has format version 99, this lookdown reads version 1"),
        ({"runtime": "../../evil"}, "names the runtime '../../evil'"),
        ({"precision": "int2"}, "in 'int2', which this lookdown does not know"),
        ({"settings": None}, "openvino"),
        ({"measured": 3}, "lacks 'measured'"),
    ],
)
def test_what_says_something_else_of_itself_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = copied(tmp_path)
    told = json.loads((folder / "export.json").read_text())
    (folder / "export.json").write_text(json.dumps({**told, **change}))
    with pytest.raises(StoredEmbedderError, match=message):
        ExportedEmbedder.load(folder)


def test_a_model_of_other_shapes_with_a_right_digest_is_refused(tmp_path: Path) -> None:
    from lookdown.atomic import digest

    folder = copied(tmp_path)
    told = json.loads((folder / "export.json").read_text())
    told["settings"]["dimension"] = 9
    told.pop("sha256")
    model = {name: (folder / name).read_bytes() for name in FILES["openvino"]}
    (folder / "export.json").write_text(json.dumps({**told, "sha256": digest(told, model)}))
    with pytest.raises(StoredEmbedderError, match="a model of another network than it says"):
        ExportedEmbedder.load(folder)


def test_an_empty_folder_is_no_export(tmp_path: Path) -> None:
    assert not ExportedEmbedder.is_at(tmp_path)
    with pytest.raises(StoredEmbedderError, match=r"holds no export \(export.json is missing\)"):
        read_description(tmp_path)


@pytest.mark.parametrize("name", [*RUNTIMES, *(f"{runtime}-int8" for runtime in RUNTIMES)])
def test_torch_is_not_imported(name: str) -> None:
    code = (
        "import sys, numpy\n"
        "from lookdown.networks.network_folder import ExportedEmbedder\n"
        "made = ExportedEmbedder.load(sys.argv[1])\n"
        "assert made.embed(numpy.zeros((3, 3, 32, 32), numpy.uint8)).shape == (3, 8)\n"
        "assert 'torch' not in sys.modules and 'timm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(owner() / "exported" / name)], check=True)
