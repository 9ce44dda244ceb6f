"""Soft moments against the sum over all pairs, and against labels where shares are 0 or 1."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.adaptation.targets import kinds

from lookdown.adaptation.soft_moments import SoftMoments
from lookdown.errors import InputError
from lookdown.metrics import PairMoments


def test_a_pair_is_the_same_as_far_as_both_share_a_cluster() -> None:
    X, _ = kinds(4, 8)
    X += 100  # far from the origin nothing is lost
    shares = np.random.default_rng(1).dirichlet([0.5, 1, 2], size=len(X))
    sums, weights = np.zeros((2, 6, 6)), np.zeros(2)
    for i, j in combinations(range(len(X)), 2):
        same = sum(shares[i, k] * shares[j, k] for k in range(3))
        for hypothesis, weight in enumerate((same, 1 - same)):
            sums[hypothesis] += weight * np.outer(X[i] - X[j], X[i] - X[j])
            weights[hypothesis] += weight
    moments = SoftMoments(X, shares)
    np.testing.assert_allclose(moments.covariances(), sums / weights[:, None, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))


def test_shares_of_zero_and_one_are_labels() -> None:
    X, y = kinds(4, 8)
    found = SoftMoments(X.astype(np.float32), np.eye(4)[y]).covariances()
    np.testing.assert_allclose(
        found, PairMoments.of(X.astype(np.float32), y).covariances("pairs"), rtol=1e-9, atol=1e-12
    )


def test_clusters_of_one_chip_each_make_no_same_pair() -> None:
    X, _ = kinds(1, 4)
    with pytest.raises(InputError, match="no two chips share a cluster; use fewer clusters"):
        SoftMoments(X, np.eye(4)).covariances()
