"""Embeddings and labels in, a number to descend out: the GLRT loss and the losses it is compared with."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
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

_FROM_THE_RUN = ("classes", "dimension", "seed")  # known to the caller of `make_loss`, never set in a recipe


def make_loss(
    name: str, options: Mapping[str, Any] | None = None, *, classes: int, dimension: int, seed: int = 0
) -> Loss:
    """Make a loss by its name in `LOSSES`, with the options that a recipe gives it.

    `classes`, `dimension` and `seed` go to the losses that have a use for them.
    """
    if name not in LOSSES:
        raise InputError(f"there is no loss {name!r}{_instead(name, LOSSES)}")
    kind = LOSSES[name]
    taken = inspect.signature(kind).parameters
    known = [parameter for parameter in taken if parameter not in _FROM_THE_RUN]
    for option in options or {}:
        if option not in known:
            raise InputError(f"the loss {name} has no option {option!r}{_instead(option, known)}")
    run = {"classes": classes, "dimension": dimension, "seed": seed}
    return kind(**{key: value for key, value in run.items() if key in taken}, **(options or {}))


def _instead(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), known := list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
