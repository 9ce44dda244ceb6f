"""Trunks of timm: names, bands, sizes, layouts, and strict loading."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lookdown.errors import InputError, WeightsError
from lookdown.networks.backbones import (
    ALIASES,
    build_trunk,
    load_trunk,
    normalisation,
    resolve_name,
    timm,
    training_recipe,
)


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("mobilenetv2", "mobilenetv2_100"),
        ("swinv2_tiny", "swinv2_tiny_window8_256"),
        ("resnet50", "resnet50"),
        ("resnet50.a1_in1k", "resnet50.a1_in1k"),
    ],
)
def test_names_are_those_of_timm_and_some_short_ones(given: str, resolved: str) -> None:
    assert resolve_name(given) == resolved


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet5O", "did you mean resnet50?"),
        ("swinv2", "did you mean swinv2_tiny?"),
        ("hf-hub:someone/else", "is not known to timm"),
        ("local-dir:/tmp", "is not known to timm"),
        ("resnet18.imagenet", r"does not know; known are resnet18\.a1_in1k"),
        (50, "is not known to timm"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_name(name)


def test_short_names_lead_to_networks_that_exist() -> None:
    assert all(timm.is_model(name) for name in ALIASES.values())
    assert not any(timm.is_model(name) for name in ALIASES)


def test_normalisation_follows_the_filters() -> None:
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    assert normalisation("resnet50", 3) == (mean, std)
    assert sum(normalisation("resnet50", 1), ()) == pytest.approx((0.449, 0.226))
    assert normalisation("resnet50", 4) == ((*mean, mean[0]), (*std, std[0]))
    assert normalisation("resnet50", 13)[0] == (*mean * 4, mean[0])
    assert normalisation("tf_efficientnet_lite0", 3) == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    ("name", "size", "width", "positions"),
    [
        ("resnet18", 64, 512, 2 * 2),
        ("mobilenetv3_small_050", 64, 1024, 2 * 2),  # wider than its features
    ],
)
def test_whatever_the_layout_features_come_by_position(name: str, size: int, width: int, positions: int) -> None:
    trunk = build_trunk(name, bands=3, size=size)
    assert trunk.width == width
    assert trunk.training
    with torch.inference_mode():
        assert trunk.eval()(torch.zeros(2, 3, size, size)).shape == (2, width, positions)


@pytest.mark.parametrize("name", ["swinv2_tiny_window8_256", "tf_efficientnet_lite0"])
def test_positions_averaged_are_what_the_network_gives_its_classifier(name: str) -> None:
    trunk = build_trunk(name, bands=3, size=64).eval()
    own: dict[str, Any] = {"img_size": 64} if training_recipe(name).fixed_input_size else {}
    whole = timm.create_model(name, num_classes=0, **own).eval()
    whole.load_state_dict(trunk.network.state_dict())
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(trunk(images).mean(2), whole(images), rtol=1e-4, atol=1e-5)


def test_tokens_without_a_place_are_left_out() -> None:
    trunk = build_trunk("vit_tiny_patch16_224", bands=3, size=64).eval()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        tokens = trunk.network.forward_features(images)  # type: ignore[operator]
        assert tokens.shape == (2, 17, 192)
        assert torch.equal(trunk(images), tokens[:, 1:].mT)


def test_a_size_that_does_not_fit_is_refused_with_one_that_does() -> None:
    with pytest.raises(InputError, match=r"cannot take images of 112 pixels with 3 bands .* try size=128 or size=256"):
        build_trunk("swinv2_tiny_window8_256", bands=3, size=112)
    build_trunk("swinv2_tiny_window8_256", bands=3, size=128)


def whole_network(classes: int, bands: int = 3) -> dict[str, torch.Tensor]:
    return dict(timm.create_model("test_resnet", num_classes=classes, in_chans=bands).state_dict())


@pytest.mark.parametrize("classes", [1000, 20, None])
def test_weights_load_with_any_classifier_or_none(classes: int | None) -> None:
    tensors = whole_network(classes or 1000)
    if classes is None:
        tensors = {key: value for key, value in tensors.items() if not key.startswith("fc.")}
    trunk = build_trunk("test_resnet", bands=3, size=64)
    load_trunk(trunk, tensors, name="test_resnet", bands=3, size=64, origin="a file")
    for key, value in trunk.network.state_dict().items():
        assert torch.equal(value, tensors[key]), key


@pytest.mark.parametrize("bands", [1, 4, 13])
def test_the_first_layer_is_fitted_to_the_bands(bands: int) -> None:
    tensors = whole_network(1000)
    trunk = build_trunk("test_resnet", bands=bands, size=64)
    load_trunk(trunk, tensors, name="test_resnet", bands=bands, size=64, origin="a file")
    filters, found = tensors["conv1.0.weight"], trunk.network.state_dict()["conv1.0.weight"]
    assert found.shape == (16, bands, 3, 3)
    for band in range(bands):
        expected = filters.sum(1) if bands == 1 else filters[:, band % 3] * 3 / bands
        torch.testing.assert_close(found[:, band], expected)


@pytest.mark.parametrize(("bands", "classes"), [(1, 7), (2, 7), (4, 7), (5, 7), (6, 7), (13, 7), (4, 1000), (13, 1000)])
def test_a_first_layer_for_these_bands_stays_to_the_bit(bands: int, classes: int) -> None:
    tensors = whole_network(classes, bands)
    trunk = build_trunk("test_resnet", bands=bands, size=64)
    load_trunk(trunk, tensors, name="test_resnet", bands=bands, size=64, origin="a file")
    for key, value in trunk.network.state_dict().items():
        assert torch.equal(value, tensors[key]), key


@pytest.mark.parametrize(("inputs", "bands"), [(5, 3), (1, 3), (5, 4), (4, 13), (6, 1)])
def test_a_first_layer_for_other_bands_is_refused(inputs: int, bands: int) -> None:
    trunk = build_trunk("test_resnet", bands=bands, size=64)
    with pytest.raises(WeightsError, match=f"weight is for {inputs} bands, neither for 3 nor for the {bands} of"):
        load_trunk(trunk, whole_network(7, inputs), name="test_resnet", bands=bands, size=64, origin="a file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("layer1.0.conv1.weight"), r"does not fit test_resnet: .*layer1\.0\.conv1\.weight"),
        (lambda t: t.update({"layer9.weight": torch.zeros(3)}), r"does not fit test_resnet: .*layer9\.weight"),
        (lambda t: t.update({"bn1.weight": torch.zeros(17)}), r"does not fit test_resnet: .*size mismatch"),
        (lambda t: t.clear(), "does not fit test_resnet"),
    ],
)
@pytest.mark.parametrize(("inputs", "bands", "classes"), [(3, 3, 1000), (3, 3, 7), (3, 13, 7), (13, 13, 1000)])
def test_weights_that_lack_a_tensor_or_have_another_are_refused(
    change: object, message: str, inputs: int, bands: int, classes: int
) -> None:
    tensors = whole_network(classes, inputs)
    assert callable(change)
    change(tensors)
    trunk = build_trunk("test_resnet", bands=bands, size=64)
    with pytest.raises(WeightsError, match=message) as caught:
        load_trunk(trunk, tensors, name="test_resnet", bands=bands, size=64, origin="my.pth")
    assert str(caught.value).startswith("my.pth does not fit")


def test_weights_of_another_network_are_refused() -> None:
    tensors = dict(timm.create_model("test_efficientnet").state_dict())
    trunk = build_trunk("test_resnet", bands=3, size=64)
    with pytest.raises(WeightsError, match="Give weights of test_resnet, or the backbone that these belong to"):
        load_trunk(trunk, tensors, name="test_resnet", bands=3, size=64, origin="other.pth")
