"""Embeddings and labels in, a number to minimise out: the GLRT loss and the losses it is compared with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lookdown.errors import InputError
from lookdown.losses.ccl import CCLLoss
from lookdown.losses.circle import CircleLoss
from lookdown.losses.contrastive import ContrastiveLoss
from lookdown.losses.glrt import GLRTLoss
from lookdown.losses.identity import IdentityLoss
from lookdown.losses.instance import InstanceLoss
from lookdown.losses.lifted import LiftedLoss
from lookdown.losses.loss import ClassLoss, Loss
from lookdown.losses.sp import SPLoss
from lookdown.losses.sphere import SphereLoss
from lookdown.losses.triplet import TripletLoss
from lookdown.losses.uce import UCELoss
from lookdown.losses.unified import UnifiedLoss
from lookdown.suggestions import did_you_mean

__all__ = [
    "LOSSES",
    "CCLLoss",
    "CircleLoss",
    "ClassLoss",
    "ContrastiveLoss",
    "GLRTLoss",
    "IdentityLoss",
    "InstanceLoss",
    "LiftedLoss",
    "Loss",
    "SPLoss",
    "SphereLoss",
    "TripletLoss",
    "UCELoss",
    "UnifiedLoss",
    "make_loss",
]

LOSSES: dict[str, type[Loss]] = {
    "identity": IdentityLoss,
    "sphere": SphereLoss,
    "triplet": TripletLoss,
    "lifted": LiftedLoss,
    "instance": InstanceLoss,
    "contrastive": ContrastiveLoss,
    "circle": CircleLoss,
    "sp": SPLoss,
    "uce": UCELoss,
    "ccl": CCLLoss,
    "unified": UnifiedLoss,
    "glrt": GLRTLoss,
}

_FROM_THE_RUN = ("classes", "dimension", "seed")  # arguments of `make_loss`, never options of a recipe


def make_loss(
    name: str, options: Mapping[str, Any] | None = None, *, classes: int, dimension: int, seed: int = 0
) -> Loss:
    """Make a loss by its name.

    name: a key of `lookdown.losses.LOSSES`, such as `triplet`.
    options: parameters of the loss by name, as a recipe gives them; the others keep their defaults.
    classes: number of classes. Like the next two, it goes only to the losses that take it.
    dimension: dimensions of an embedding.
    seed: of the initial weights.

    >>> import lookdown, torch
    >>> loss = lookdown.make_loss("triplet", {"margin": 0.2}, classes=2, dimension=2)
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    >>> round(float(loss(x, torch.tensor([0, 0, 1, 1]))), 4)
    0.1155
    """
    if name not in LOSSES:
        raise InputError(f"there is no loss {name!r}; {did_you_mean(name, LOSSES)}")
    kind = LOSSES[name]
    taken = inspect.signature(kind).parameters
    known = [parameter for parameter in taken if parameter not in _FROM_THE_RUN]
    for option in options or {}:
        if option not in known:
            raise InputError(f"the loss {name} has no option {option!r}; {did_you_mean(option, known)}")
    run = {"classes": classes, "dimension": dimension, "seed": seed}
    return kind(**{key: value for key, value in run.items() if key in taken}, **(options or {}))
