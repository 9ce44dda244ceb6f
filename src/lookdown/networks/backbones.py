"""timm's networks behind one call: a trunk without its classifier, for any number of bands."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lookdown.errors import InputError, WeightsError
from lookdown.networks.torchvision_guard import timm

__all__ = [
    "ALIASES",
    "Trunk",
    "architecture",
    "build_trunk",
    "load_trunk",
    "normalisation",
    "resolve_name",
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


class Trunk(nn.Module):
    """A network without classifier and pooling; whatever its layout, features come out as (n, width, positions)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.width = 0  # known once it is built

    @property
    def dtype(self) -> torch.dtype:
        """The type of its weights, which images must have too."""
        return next(self.parameters()).dtype

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, width, positions) of normalised images (n, bands, size, size)."""
        features: Tensor = self.network(images)
        if features.ndim == 3:  # tokens, the first of which may stand for no place
            return features[:, getattr(self.network, "num_prefix_tokens", 0) :].mT
        if getattr(self.network, "output_fmt", "NCHW") == "NHWC":
            features = features.permute(0, 3, 1, 2)
        return features.flatten(2)


def resolve_name(name: str) -> str:
    """Return timm's name of a backbone; an unknown one is refused with the nearest that is known."""
    resolved = ALIASES.get(name, name)
    if not isinstance(name, str) or not timm.is_model(resolved):
        known = [*ALIASES, *timm.list_models()]
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "see timm.list_models() for the names"
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
    """Return what timm has noted on a backbone: preprocessing, size, where its weights are."""
    return timm.get_pretrained_cfg(name) or timm.models.PretrainedCfg()


def normalisation(name: str, bands: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation a band, as the backbone was trained with, extended as timm extends weights.

    timm sums the three filters of the first layer for one band, which therefore gets the mean of the three values;
    for more bands it repeats them (red, green, blue, red, ...), and the values are repeated likewise.
    """
    recipe = training_recipe(name)
    mean, std = (tuple(float(value) for value in values) for values in (recipe.mean, recipe.std))
    if bands == 1:
        return (sum(mean) / len(mean),), (sum(std) / len(std),)
    return tuple(mean[i % len(mean)] for i in range(bands)), tuple(std[i % len(std)] for i in range(bands))


def build_trunk(name: str, *, bands: int, size: int) -> Trunk:
    """Return a trunk with fresh weights, checked to take images of this size."""
    options = {"in_chans": bands, "num_classes": 0, "global_pool": "", **_fixed_size(name, size)}
    try:
        with torch.device("meta"), torch.inference_mode():  # shapes without values: costs nothing at any size
            features = Trunk(timm.create_model(name, **options)).eval()(torch.zeros(1, bands, size, size))
        trunk = Trunk(timm.create_model(name, **options))
    except _REFUSALS as error:
        native = training_recipe(name).input_size[-1]
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{name} cannot take images of {size} pixels with {bands} bands ({reason}); it was made for {native}: "
            f"try size={native // 2} or size={native}"
        ) from error
    trunk.width = features.shape[1]
    return trunk


def load_trunk(trunk: Trunk, tensors: Mapping[str, Tensor], *, name: str, bands: int, size: int, origin: str) -> None:
    """Put weights into a trunk, strictly: each tensor must be there, of its shape, and none beside it.

    The weights are those of the whole network as timm names them, with any number of classes or without classifier. A
    first layer for `bands` bands is taken as it is, one for three is fitted by timm's rule, any other is refused. Where
    a network has a fixed size, timm fits the rest to that.
    """
    recipe = training_recipe(name)
    classifiers = _layers(recipe.classifier)
    tensors = dict(tensors)
    found = [tensors[f"{layer}.weight"] for layer in classifiers if f"{layer}.weight" in tensors]
    classes = len(found[0]) if found else recipe.num_classes
    try:
        for layer in _layers(recipe.first_conv):
            _fit_to_bands(tensors, f"{layer}.weight", bands, trunk.network.state_dict().get(f"{layer}.weight"))
        if not found:
            blank = timm.create_model(name, num_classes=classes).state_dict()
            tensors |= {key: blank[key] for key in blank if key.rpartition(".")[0] in classifiers}
        # timm lets missing tensors pass where it fits the bands itself, or where the classes are not the recipe's.
        overlay = {"state_dict": tensors, "num_classes": classes, "label_offset": 0, "custom_load": False}
        whole = timm.create_model(
            name,
            pretrained=True,
            pretrained_cfg_overlay={**overlay, "first_conv": None},
            in_chans=bands,
            num_classes=classes,
            **_fixed_size(name, size),
        ).state_dict()
        trunk.network.load_state_dict({key: whole[key] for key in trunk.network.state_dict()})
    except _REFUSALS as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[:3])[:300]
        raise WeightsError(
            f"{origin} does not fit {name}: {reason}. Give weights of {name}, or the backbone that these belong to"
        ) from error


def _fit_to_bands(tensors: dict[str, Tensor], key: str, bands: int, wanted: Tensor | None) -> None:
    """Fit a first layer for three bands to `bands`; one that fits stays, to the bit."""
    filters = tensors.get(key)
    if filters is None or wanted is None or filters.shape == wanted.shape:
        return
    if filters.ndim != 4 or filters.shape[1] != 3:
        inputs = filters.shape[1] if filters.ndim > 1 else "no"
        raise ValueError(f"{key} is for {inputs} bands, neither for 3 nor for the {bands} of this embedder")
    tensors[key] = timm.models.adapt_input_conv(bands, filters)


def _layers(names: str | Sequence[str] | None) -> list[str]:
    """Return the layers that timm's notes name: one, several or none."""
    return [names] if isinstance(names, str) else list(names or ())


def _fixed_size(name: str, size: int) -> dict[str, Any]:
    """Return the argument by which networks with a fixed grid, Swin and other transformers, learn their size."""
    return {"img_size": size} if training_recipe(name).fixed_input_size else {}
