"""Exports embed as torch does, whatever the network and the runtime, or are not written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.networks.exports import RUNTIMES, chips, network, owner, space

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio
from lookdown.errors import ExportError, InputError
from lookdown.networks import Embedder, ExportedEmbedder
from lookdown.networks import export as export_module
from lookdown.networks.export import LARGEST_DISTANCE, Space, export
from lookdown.networks.runtimes import RuntimeName

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
    as_onnx, other = (
        export_module._as_onnx,
        Embedder("test_resnet", size=32, dimension=8, weights="none", seed=1).eval(),
    )
    monkeypatch.setattr(export_module, "_as_onnx", lambda embedder, space, place: as_onnx(other, space, place))
    with pytest.raises(ExportError, match=r"was not written: in .* at a cosine distance of .* and 0.0001 is allowed"):
        export(network(), tmp_path / runtime, runtime, chips(), space())
    assert not (tmp_path / runtime).exists()


def test_without_chips_nothing_can_be_compared(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="chips is empty"):
        export(network(), tmp_path / "onnx", "onnx", chips(0), space())
