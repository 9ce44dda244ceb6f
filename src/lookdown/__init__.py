"""Find every object like this one in overhead imagery, at a false-alarm rate you choose."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookdown.adaptation import Adaptation, adapt
    from lookdown.chips.manifest import Manifest
    from lookdown.chips.prepare import prepare
    from lookdown.errors import LookdownError
    from lookdown.evaluation import Evaluation, evaluate
    from lookdown.gallery import Gallery, Hit, Results, SearchRequest, Where
    from lookdown.losses import GLRTLoss, make_loss
    from lookdown.metrics import (
        Cosine,
        Euclidean,
        GaussianLikelihoodRatio,
        KindLikelihoodRatio,
        MixtureLikelihoodRatio,
        PairMoments,
        load_metric,
    )
    from lookdown.networks import Embedder
    from lookdown.training.train import train

__all__ = [
    "Adaptation",
    "Cosine",
    "Embedder",
    "Euclidean",
    "Evaluation",
    "GLRTLoss",
    "Gallery",
    "GaussianLikelihoodRatio",
    "Hit",
    "KindLikelihoodRatio",
    "LookdownError",
    "Manifest",
    "MixtureLikelihoodRatio",
    "PairMoments",
    "Results",
    "SearchRequest",
    "Where",
    "__version__",
    "adapt",
    "evaluate",
    "load_metric",
    "make_loss",
    "prepare",
    "train",
]
# Where public names live; imported on first use, since scikit-learn and torch take seconds and `--help` may not.
_NAMES = {
    "lookdown.adaptation": "Adaptation adapt",
    "lookdown.chips.manifest": "Manifest",
    "lookdown.chips.prepare": "prepare",
    "lookdown.errors": "LookdownError",
    "lookdown.evaluation": "Evaluation evaluate",
    "lookdown.gallery": "Gallery Hit Results SearchRequest Where",
    "lookdown.losses": "GLRTLoss make_loss",
    "lookdown.metrics": (
        "Cosine Euclidean GaussianLikelihoodRatio KindLikelihoodRatio MixtureLikelihoodRatio PairMoments load_metric"
    ),
    "lookdown.networks": "Embedder",
    "lookdown.training.train": "train",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # half as long as all the rest of `--help`, which does not say it

        return version("lookdown")
    if name not in _HOMES:
        raise AttributeError(f"module 'lookdown' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
