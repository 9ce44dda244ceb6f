"""Embeddings and labels in, a similarity out: estimated over all pairs, with decisions at a false-alarm rate."""

from lookdown.metrics.calibration import Calibration
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.fixed_metrics import Cosine, Euclidean
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.kinds import KindLikelihoodRatio
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.mirrored_mixture import MirroredMixture
from lookdown.metrics.mixture import MixtureLikelihoodRatio
from lookdown.metrics.pair_moments import PairMoments
from lookdown.metrics.pairwise import Ranking
from lookdown.metrics.quadratic_form import QuadraticForm
from lookdown.metrics.ranking import top_k
from lookdown.metrics.stored_metric import load_metric

__all__ = [
    "Calibration",
    "Cosine",
    "Estimate",
    "Euclidean",
    "GaussianLikelihoodRatio",
    "KindLikelihoodRatio",
    "L2Metric",
    "Metric",
    "MirroredMixture",
    "MixtureLikelihoodRatio",
    "PairMoments",
    "QuadraticForm",
    "Ranking",
    "load_metric",
    "top_k",
]
