"""Principal components against scikit-learn's and against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lookdown.errors import InputError
from lookdown.networks.projection import principal_components

X = np.random.default_rng(0).normal(size=(200, 12)) @ np.random.default_rng(1).normal(size=(12, 12)) + 100


def test_they_are_those_of_scikit_learn() -> None:
    theirs = PCA(5, svd_solver="full").fit(X)
    ours = principal_components([X], 5)
    np.testing.assert_allclose(ours.variances, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.mean, theirs.mean_, rtol=1e-12)
    signs = np.sign((ours.axes * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.axes, theirs.components_ * signs[:, None], atol=1e-9)


def test_the_largest_entry_of_each_axis_is_positive() -> None:
    for features in (X, -X):
        for axis in principal_components([features], 12).axes:
            assert max(axis, key=abs) > 0


@pytest.mark.parametrize("sizes", [[200], [1, 199], [64, 64, 64, 8], [1] * 200])
def test_batches_do_not_matter(sizes: list[int]) -> None:
    batches = np.split(X, np.cumsum(sizes)[:-1])
    ours, whole = principal_components(batches, 4), principal_components([X], 4)
    np.testing.assert_allclose(ours.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(ours.axes, whole.axes, atol=1e-9)
    centred = X - X.mean(axis=0)
    covariance = sum(np.outer(row, row) for row in centred) / (len(X) - 1)
    np.testing.assert_allclose(ours.axes @ covariance @ ours.axes.T, np.diag(ours.variances), atol=1e-8)


def test_too_few_directions_are_refused_with_the_number_there_is() -> None:
    with pytest.raises(InputError, match=r"these 8 vary in 7 of 12; give more than 9 images .* of at most 7"):
        principal_components([X[:8]], 9)
    assert principal_components([X[:8]], 7).axes.shape == (7, 12)
    twice = np.concatenate([X[:4], X[:4]]).astype(np.float32)
    with pytest.raises(InputError, match="these 8 vary in 3 of 12"):
        principal_components([twice[:5], twice[5:]], 4)
    with pytest.raises(InputError, match="these 9 vary in 0 of 12"):
        principal_components([np.ones((9, 12))], 1)
    for batches in ([], [X[:1]]):
        with pytest.raises(InputError, match="at least two images"):
            principal_components(batches, 1)
