"""scikit-learn's own checks, but for those that the meaning of a pair metric rules out."""

from __future__ import annotations

import warnings

import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio, KindLikelihoodRatio
from lookdown.errors import LowRankWarning
from lookdown.metrics import Metric

COMPARES = {
    "check_fit_score_takes_y": "score(queries, gallery) compares embeddings; it does not grade the estimator",
    "check_n_features_in_after_fitting": "the same: it calls score(X, y)",
    "check_pipeline_consistency": "the same: it calls score(X, y)",
    "check_dtype_object": "asks for a TypeError; ours is InputError, a ValueError that says what to do",
}
DIRECTIONS = {"check_estimators_dtypes": "its integers hold a zero vector, which has no direction and is refused"}


@pytest.mark.parametrize(
    ("metric", "exceptions"),
    [
        (GaussianLikelihoodRatio(normalize=False), COMPARES),
        (GaussianLikelihoodRatio(), COMPARES | DIRECTIONS),
        (KindLikelihoodRatio(normalize=False), COMPARES),
        (Euclidean(), COMPARES),
        (Cosine(), COMPARES | DIRECTIONS),
    ],
    ids=str,
)
def test_the_estimator_checks_pass(metric: Metric, exceptions: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(metric, expected_failed_checks=exceptions)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(exceptions), "an exception that is no longer needed should go"


def test_kept_indefinite_only_what_needs_a_space_fails() -> None:
    metric = GaussianLikelihoodRatio(indefinite="keep", normalize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(metric, expected_failed_checks=COMPARES, on_fail=None)
    for result in results:
        if result["status"] == "failed":
            assert "there is no space to transform to" in str(result["exception"]), result["check_name"]


def test_a_metric_works_in_a_pipeline_and_can_be_cloned() -> None:
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        pipeline = make_pipeline(GaussianLikelihoodRatio(weighting="classes"), KNeighborsClassifier(5))
        accuracy = pipeline.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    assert accuracy > 0.9
    assert clone(pipeline[0]).get_params() == pipeline[0].get_params()
    assert not hasattr(clone(pipeline[0]), "matrix_")
