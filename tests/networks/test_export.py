"""Exports embed as torch does, whatever the network and the runtime, or are not written."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from tests.networks.exports import RUNTIMES, chips, network, owner, space

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio
from lookdown.errors import ExportError, InputError
from lookdown.networks import Embedder, ExportedEmbedder
from lookdown.networks import export as export_module
from lookdown.networks.export import LARGEST_DISTANCE, Graph, Space, export, trace_apart
from lookdown.networks.runtimes import RuntimeName
from lookdown.networks.stored_embedder import load_embedder

pytestmark = pytest.mark.export


def distances(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """1 - cosine, row by row, from the formula."""
    pairs = zip(first.astype(float), second.astype(float), strict=True)
    return np.array([1 - a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_export_gives_raw_embeddings_and_the_transforms_of_the_metric(runtime: RuntimeName) -> None:
    made = ExportedEmbedder.load(owner() / "exported" / runtime)
    images = chips(21, seed=7)
    raw = network().embed(images)
    assert distances(made.embed(images), raw).max() <= LARGEST_DISTANCE
    np.testing.assert_allclose(made.embed(images), raw, rtol=1e-3, atol=1e-4)
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(made.embed_transformed(images), unit @ space().factor, rtol=1e-3, atol=1e-4)
    assert made.fingerprint == network().fingerprint
    assert made.description.measured["worst cosine distance"] <= LARGEST_DISTANCE
    assert made.description.times_torch > 0


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("backbone", "settings"),
    [
        ("test_resnet", {"bands": 5, "pooling": "gem", "head": "mlp"}),
        ("test_vit", {"size": 160}),
        ("tf_efficientnet_lite0", {"size": 64}),
    ],
)
def test_other_bands_poolings_heads_and_trunks(
    tmp_path: Path, runtime: RuntimeName, backbone: str, settings: dict[str, Any]
) -> None:
    embedder = Embedder(backbone, **{"size": 32, "weights": "none", **settings}).eval()
    images = chips(5, embedder.settings.size, embedder.settings.bands)
    made = export(embedder, tmp_path / runtime, runtime, images, space(64, 64))
    assert distances(made.embed(images), embedder.embed(images)).max() <= LARGEST_DISTANCE


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_projection_without_training_is_exported_too(tmp_path: Path, runtime: RuntimeName) -> None:
    images = chips(30, 64)
    embedder = Embedder.pretrained("tf_efficientnet_lite0", images, dimension=8, size=64)
    made = export(embedder, tmp_path / runtime, runtime, images, space())
    assert distances(made.embed(images), embedder.embed(images)).max() <= LARGEST_DISTANCE


def test_a_space_is_read_off_any_metric_that_is_a_distance() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6)) + np.repeat(rng.normal(size=(6, 6)), 10, axis=0), np.repeat(np.arange(6), 10)
    for metric in (Cosine().fit(X), Euclidean().fit(X), GaussianLikelihoodRatio(shrinkage=0.5).fit(X, y)):
        found = Space.of(metric.transform, 6, "m")
        np.testing.assert_allclose(found.of_embeddings(X.astype(np.float32)), metric.transform(X), rtol=1e-4, atol=1e-4)
        assert found.normalize == (not isinstance(metric, Euclidean))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_graph_that_embeds_otherwise_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: RuntimeName
) -> None:
    """Another network is traced in its place: what a defect in a converter would come to."""
    other = Embedder("test_resnet", size=32, dimension=8, weights="none", seed=1).eval()
    trace = export_module.trace_apart
    monkeypatch.setattr(export_module, "trace_apart", lambda embedder, space, file: trace(other, space, file))
    with pytest.raises(ExportError, match=r"was not written: in .* at a cosine distance of .* and 0.0001 is allowed"):
        export(network(), tmp_path / runtime, runtime, chips(), space())
    assert not (tmp_path / runtime).exists()


def test_without_chips_nothing_can_be_compared(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="chips is empty"):
        export(network(), tmp_path / "onnx", "onnx", chips(0), space())


def test_the_graph_gives_what_the_module_gives_for_any_number_of_images(tmp_path: Path) -> None:
    factor = torch.randn(8, 5)
    for normalize in (True, False):
        file = tmp_path / f"{normalize}.onnx"
        trace_apart(network(), Space(factor.double().numpy(), normalize, "m"), file)
        session = onnxruntime.InferenceSession(file)
        assert [one.name for one in session.get_outputs()] == ["embedding", "transformed"]
        for count in (1, 7):
            images = chips(count)
            with torch.inference_mode():
                wanted = Graph(network(), factor, normalize=normalize).eval()(torch.from_numpy(images))
            for ours, theirs in zip(session.run(None, {"images": images}), wanted, strict=True):
                np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)


def test_what_cannot_be_traced_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that raises in the place of torch's exporter, as it does at networks that it cannot follow."""
    fake = tmp_path / "python"
    code = (
        "import sys, torch\n"
        "def refuse(*words, **named): raise ValueError('data-dependent branch')\n"
        "torch.onnx.export = refuse\n"
        "import lookdown.networks.export as tracing; sys.argv = ['', *sys.argv[5:]]; tracing.main()\n"
    )
    (tmp_path / "refusing.py").write_text(code)
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "refusing.py"} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    told = f"test_resnet cannot be exported by torch {torch.__version__}: data-dependent branch; use torch"
    with pytest.raises(ExportError, match=re.escape(told)):
        trace_apart(network(), space(), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_the_network_itself_stays_as_it_is(tmp_path: Path) -> None:
    network().save(tmp_path / "embedder")
    before = network().fingerprint
    trace_apart(network(), space(), tmp_path / "model.onnx")
    assert network().fingerprint == load_embedder(tmp_path / "embedder").fingerprint == before
