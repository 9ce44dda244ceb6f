"""timm's networks behind one call: a trunk without its classifier, for any number of bands.

This is the only place that imports timm, because torchvision may have to be repaired before. The torchvision on PyPI is
built for CUDA; beside a CPU-only torch its import, and so that of timm, fails with "operator torchvision::nms does not
exist". timm uses only its Python part, which needs the operators to be declared, so they are declared here. Beside a
matching torch nothing is done. After a repair, `torchvision.io` and `torchvision.ops.nms` stay unusable.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lookdown.errors import InputError, WeightsError
from lookdown.networks.layers import Trunk
from lookdown.suggestions import did_you_mean

_NMS_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []  # a declaration lives as long as its library object


def _import_torchvision() -> None:
    try:
        import torchvision
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # half imported
        library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            library.define(operator + _NMS_SIGNATURE)  # type: ignore[no-untyped-call]
        _declared.append(library)
        import torchvision  # noqa: F401


_import_torchvision()

import timm  # noqa: E402  # after torchvision is repaired

__all__ = [
    "ALIASES",
    "architecture",
    "build_trunk",
    "load_trunk",
    "normalisation",
    "resolve_name",
    "timm",
    "training_recipe",
]

ALIASES = {
    "mobilenetv2": "mobilenetv2_100",
    "swinv2_base": "swinv2_base_window8_256",
    "swinv2_small": "swinv2_small_window8_256",
    "swinv2_tiny": "swinv2_tiny_window8_256",
}
# What timm's networks raise on an image they cannot take, or on weights that are not theirs.
_REFUSALS = (RuntimeError, AssertionError, ValueError, TypeError, KeyError, IndexError, AttributeError)


def resolve_name(name: str) -> str:
    """Return timm's name of a backbone; an unknown name is refused with the nearest one."""
    resolved = ALIASES.get(name, name)
    if not isinstance(name, str) or not timm.is_model(resolved):
        names = [*ALIASES, *timm.list_models()]
        hint = did_you_mean(name, names, otherwise="see timm.list_models() for the names")
        raise InputError(f"backbone {name!r} is not known to timm {timm.__version__}; {hint}")
    tags = timm.list_pretrained(f"{architecture(resolved)}.*")
    if "." in resolved and resolved not in tags:
        raise InputError(
            f"backbone {name!r} names weights that timm {timm.__version__} does not know; known are {', '.join(tags)}"
        )
    return resolved


def architecture(name: str) -> str:
    """Return the name of a backbone without the tag of its weights."""
    return name.partition(".")[0]


def training_recipe(name: str) -> timm.models.PretrainedCfg:
    """Return timm's description of a backbone: preprocessing, size, where its weights are."""
    return timm.get_pretrained_cfg(name) or timm.models.PretrainedCfg()


def normalisation(name: str, bands: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each band, as the backbone was trained with.

    Other numbers of bands follow timm's rule for the first layer. For one band timm sums the three filters, so the band
    gets the mean of the three values. For more bands it repeats the filters (red, green, blue, red, ...), so the values
    are repeated as well.
    """
    recipe = training_recipe(name)
    mean, std = (tuple(float(value) for value in values) for values in (recipe.mean, recipe.std))
    if bands == 1:
        return (sum(mean) / len(mean),), (sum(std) / len(std),)
    return tuple(mean[i % len(mean)] for i in range(bands)), tuple(std[i % len(std)] for i in range(bands))


def build_trunk(name: str, *, bands: int, size: int) -> Trunk:
    """Return a trunk with random weights, after a check that it takes images of this size."""
    options = {"in_chans": bands, "num_classes": 0, "global_pool": "", **_fixed_size(name, size)}
    try:
        with torch.device("meta"), torch.inference_mode():  # shapes without values: costs nothing at any size
            features = Trunk(timm.create_model(name, **options)).eval()(torch.zeros(1, bands, size, size))
        return Trunk(timm.create_model(name, **options), features.shape[1])
    except _REFUSALS as error:
        native = training_recipe(name).input_size[-1]
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{name} cannot take images of {size} pixels with {bands} bands ({reason}); it was made for {native}: "
            f"try size={native // 2} or size={native}"
        ) from error


def load_trunk(trunk: Trunk, tensors: Mapping[str, Tensor], *, name: str, bands: int, size: int, origin: str) -> None:
    """Load weights into a trunk, strictly: every tensor must be there with its shape, and no other.

    The weights are those of the whole network, by timm's names, with any number of classes or without a classifier. A
    first layer for `bands` bands is taken as it is; one for three bands is fitted by timm's rule; any other is refused.
    If a network has a fixed size, timm fits the rest to it.
    """
    recipe = training_recipe(name)
    classifiers = _layers(recipe.classifier)
    tensors = dict(tensors)
    classifier = [tensors[f"{layer}.weight"] for layer in classifiers if f"{layer}.weight" in tensors]
    classes = len(classifier[0]) if classifier else recipe.num_classes
    try:
        for layer in _layers(recipe.first_conv):
            _fit_to_bands(tensors, f"{layer}.weight", bands, trunk.network.state_dict().get(f"{layer}.weight"))
        if not classifier:
            blank = timm.create_model(name, num_classes=classes).state_dict()
            tensors |= {key: blank[key] for key in blank if key.rpartition(".")[0] in classifiers}
        # timm ignores missing tensors if it fits the bands itself, or if the classes are not the recipe's.
        overlay: dict[str, Any] = {"num_classes": classes, "label_offset": 0, "custom_load": False, "first_conv": None}
        overlay["state_dict"] = tensors
        options = {"in_chans": bands, "num_classes": classes, **_fixed_size(name, size)}
        whole = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **options).state_dict()
        trunk.network.load_state_dict({key: whole[key] for key in trunk.network.state_dict()})
    except _REFUSALS as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[:3])[:300]
        raise WeightsError(
            f"{origin} does not fit {name}: {reason}. Give weights of {name}, or the backbone that these belong to"
        ) from error


def _fit_to_bands(tensors: dict[str, Tensor], key: str, bands: int, wanted: Tensor | None) -> None:
    """Fit a first layer for three bands to `bands`; one that fits stays as it is."""
    filters = tensors.get(key)
    if filters is None or wanted is None or filters.shape == wanted.shape:
        return
    if filters.ndim != 4 or filters.shape[1] != 3:
        inputs = filters.shape[1] if filters.ndim > 1 else "no"
        raise ValueError(f"{key} is for {inputs} bands, neither for 3 nor for the {bands} of this embedder")
    tensors[key] = timm.models.adapt_input_conv(bands, filters)


def _layers(names: str | Sequence[str] | None) -> list[str]:
    """Return the layers that timm names: one, several or none."""
    return [names] if isinstance(names, str) else list(names or ())


def _fixed_size(name: str, size: int) -> dict[str, Any]:
    """Return the argument that sets the size of networks with a fixed grid, such as Swin."""
    return {"img_size": size} if training_recipe(name).fixed_input_size else {}
