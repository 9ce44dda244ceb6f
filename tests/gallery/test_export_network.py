"""Networks of runs and galleries in other runtimes: written beside them, judged on chips they were not trained on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.gallery.galleries import vector_gallery
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import ExportError, GalleryBusyError, InputError, StoredEmbedderError
from lookdown.gallery import Cutting, Gallery
from lookdown.gallery.export_network import export_network
from lookdown.gallery.index.creation import gallery_of_pretrained, gallery_of_run
from lookdown.networks.network_folder import list_exports
from lookdown.networks.quantize import LARGEST_DROP
from lookdown.training.evaluate_run import evaluate_run
from lookdown.training.train import train

pytestmark = pytest.mark.export


@pytest.fixture(scope="module")
def exported_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its network in float32 and int8; nobody writes to it."""
    short = recipe(network={"backbone": "test_resnet"}, stage1={"epochs": 1}, stage2={"epochs": 1})
    run = train(short, tmp_path_factory.mktemp("runs") / "ships").path
    made = export_network(run, "openvino", int8=True)
    assert made.int8 is not None
    assert (made.int8.export is not None) == (made.int8.before - made.int8.after <= LARGEST_DROP)
    return run


@pytest.fixture
def run(tmp_path: Path, exported_run: Path) -> Path:
    """A copy with float32 alone."""
    copy = Path(shutil.copytree(exported_run, tmp_path / "run"))
    shutil.rmtree(copy / "exported" / "openvino-int8", ignore_errors=True)
    return copy


def test_a_run_is_indexed_and_searched_by_its_export_as_by_torch(tmp_path: Path, run: Path) -> None:
    fast = gallery_of_run(tmp_path / "fast", run)
    assert fast.embedded_by is None, "not loaded before it is needed"
    fast.add(world())
    assert fast.embedded_by == "openvino"
    shutil.rmtree(run / "exported")
    plain = gallery_of_run(tmp_path / "plain", run)
    plain.add(world())
    assert plain.embedded_by == "torch"
    np.testing.assert_allclose(fast.snapshot.embeddings(), plain.snapshot.embeddings(), rtol=1e-3, atol=1e-4)
    chip = Manifest.read(world()).paths[0]
    first, second = (gallery.search(chip, k=5) for gallery in (fast, plain))
    assert [hit.id for hit in first.hits] == [hit.id for hit in second.hits]
    assert fast.stats().embedder == plain.stats().embedder


def test_exports_that_a_run_gets_later_are_taken_over(tmp_path: Path, run: Path) -> None:
    later = shutil.move(run / "exported", tmp_path / "later")
    gallery_of_run(tmp_path / "g", run).add(world())
    shutil.move(later, run / "exported")
    gallery = gallery_of_run(tmp_path / "g", run)
    assert gallery.add(world()).added == 0
    assert gallery.embedded_by == "openvino"


def test_int8_has_galleries_of_its_own(tmp_path: Path, exported_run: Path) -> None:
    names = {about.name: about for about in list_exports(exported_run).values()}
    if "openvino-int8" not in names:
        pytest.skip("int8 lost more than 0.5 mAP on these few chips, so it was not kept")
    gallery = gallery_of_run(tmp_path / "g", exported_run)
    gallery.add(world())
    assert gallery.stats().embedder == gallery.embedder.fingerprint  # type: ignore[union-attr]
    assert gallery.embedded_by in names
    again = gallery_of_run(tmp_path / "g", exported_run)
    assert again.add(world()).added == 0


def test_evaluation_by_an_export_is_that_by_torch(run: Path) -> None:
    plain, fast = evaluate_run(run), evaluate_run(run, exported="openvino")
    for name, found in plain.evaluations.items():
        assert found.mean_average_precision == pytest.approx(fast.evaluations[name].mean_average_precision, abs=2e-3)
    with pytest.raises(StoredEmbedderError, match="holds no export"):
        evaluate_run(run, exported="onnx")


def test_a_gallery_without_a_run_is_exported_by_its_thumbnails(tmp_path: Path) -> None:
    chips = tmp_path / "chips"
    shutil.copytree(world() / "chips", chips)
    gallery = gallery_of_pretrained(tmp_path / "g", "tf_efficientnet_lite0", [chips], Cutting())
    gallery.add(chips)
    shutil.rmtree(chips)
    with pytest.raises(InputError, match="these chips have no labels; give `data`"):
        export_network(tmp_path / "g", "onnx", int8=True)
    made = export_network(tmp_path / "g", "onnx")
    assert made.fp32.description.transformed_by == gallery.metric
    opened = Gallery.open(tmp_path / "g")
    Image.new("RGB", (40, 30), "navy").save(tmp_path / "query.png")
    assert opened.search(tmp_path / "query.png", k=3).hits
    assert opened.embedded_by == "onnx"
    with pytest.raises(StoredEmbedderError, match="onnx exists"):
        export_network(tmp_path / "g", "onnx")
    with opened.writing(), pytest.raises(GalleryBusyError):
        export_network(tmp_path / "g", "onnx", overwrite=True)
    export_network(tmp_path / "g", "onnx", overwrite=True)
    labelled = export_network(tmp_path / "g", "openvino", int8=True, data=world())
    assert labelled.int8 is not None


def test_labels_of_a_gallery_judge_int8(tmp_path: Path, run: Path) -> None:
    shutil.rmtree(run / "exported")
    gallery_of_run(tmp_path / "g", run).add(Manifest.read(world()), every_role=True)
    made = export_network(tmp_path / "g", "openvino", int8=True)
    assert made.int8 is not None
    assert 0 < made.int8.before <= 100


def test_a_foreign_export_in_a_gallery_is_refused(tmp_path: Path, run: Path) -> None:
    other = recipe(network={"backbone": "test_resnet"}, stage1={"epochs": 1}, stage2={"epochs": 1}, seed=5)
    stranger = train(other, tmp_path / "other").path
    export_network(stranger, "onnx")
    gallery_of_run(tmp_path / "g", run)
    shutil.copytree(stranger / "exported" / "onnx", tmp_path / "g" / "exported" / "onnx")
    with pytest.raises(StoredEmbedderError, match="made of another network"):
        Gallery.open(tmp_path / "g").add(world())


def test_what_has_no_network_or_is_not_finished_is_refused(tmp_path: Path, run: Path) -> None:
    vector_gallery(tmp_path / "vectors")
    with pytest.raises(ExportError, match="has no network; export it where it was made"):
        export_network(tmp_path / "vectors", "onnx")
    (run / "metric" / "metric.json").unlink()
    with pytest.raises(ExportError, match="is not finished"):
        export_network(run, "onnx")


def test_an_exported_gallery_is_searched_without_torch(tmp_path: Path, run: Path) -> None:
    gallery_of_run(tmp_path / "g", run).add(world())
    chip = Manifest.read(world()).paths[0]
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from lookdown.gallery import Gallery\n"
        "gallery = Gallery.open(sys.argv[1])\n"
        "assert gallery.search(Path(sys.argv[2]), k=3, false_alarm_rate=None).hits\n"
        "gallery.add(sys.argv[3])\n"
        "loaded = {'torch', 'timm', 'torchvision'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    extra = tmp_path / "more"
    extra.mkdir()
    shutil.copy(chip, extra / "new.jpg")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "g"), str(chip), str(extra)], check=True)
