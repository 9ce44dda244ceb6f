"""Adaptation without any network: handwritten digits, some classes known and others not.

`python -m lookdown.lab.paper.digits_adaptation` prints the table of docs/adaptation.md in a few seconds. Digits are
projected on 30 principal components; the first 200 of the target ask for the others of their class.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from lookdown.adaptation import AUTO_OF_DIFFERENCES, adapt
from lookdown.errors import LowRankWarning
from lookdown.evaluation import evaluate
from lookdown.metrics import Cosine, Euclidean, GaussianLikelihoodRatio, Metric

__all__ = ["run"]

QUERIES = 200


def run(source: NDArray[np.bool_], target: NDArray[np.bool_]) -> dict[str, float]:
    """Return the mAP in percent of each metric on the target; the learnt ones have seen the labels of the source."""
    images, digits = load_digits(return_X_y=True)
    X = PCA(30, random_state=0).fit_transform(images)
    kinds = len(np.unique(digits[target]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        ratio = GaussianLikelihoodRatio(shrinkage=0.1).fit(X[source], digits[source])
        ceiling = GaussianLikelihoodRatio(shrinkage=0.1).fit(X[target], digits[target])
    metrics: dict[str, Metric] = {
        "Euclidean": Euclidean().fit(X),
        "cosine": Cosine().fit(X),
        "source ratio": ratio,
        **{
            f"CPLFPA, {name}": adapt(ratio, X[target], clusters=clusters, method="cplfpa").metric
            for name, clusters in (
                ("K = classes - 1", kinds - 1),
                ("K = classes", kinds),
                ("K = 2 x classes", 2 * kinds),
            )
        },
        "auto of differences, K = classes": adapt(ratio, X[target], clusters=kinds, method=AUTO_OF_DIFFERENCES).metric,
        "auto of differences": adapt(ratio, X[target], method=AUTO_OF_DIFFERENCES).metric,
        "auto, K = classes": adapt(ratio, X[target], clusters=kinds).metric,
        "auto": adapt(ratio, X[target]).metric,
        "true labels (ceiling)": ceiling,
    }
    return {name: _mean_average_precision(metric, X[target], digits[target]) for name, metric in metrics.items()}


def _mean_average_precision(metric: Metric, X: NDArray[np.float64], digits: NDArray[np.int64]) -> float:
    names = digits.astype(str).tolist()
    evaluation = evaluate(metric, X[:QUERIES], names[:QUERIES], X[QUERIES:], names[QUERIES:])
    return 100 * evaluation.mean_average_precision


def main() -> None:
    """Print the table."""
    digits = load_digits().target
    early = np.arange(len(digits)) < 900
    seen, unseen = run(early, ~early), run(digits < 5, digits >= 5)
    print("| | same classes in source and target | unseen classes |\n|---|---|---|")
    for name, value in seen.items():
        print(f"| {name} | {value:.1f} | {unseen[name]:.1f} |")


if __name__ == "__main__":
    main()
