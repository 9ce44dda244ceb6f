"""Shrinkage, inverses and signed factors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import oas

from lookdown.errors import InputError
from lookdown.metrics.covariance import inverse, oas_shrinkage, shrink, signed_factors


def test_oas_is_the_formula_of_its_paper_and_near_scikit_learns_in_high_dimensions() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80)) * np.geomspace(0.1, 3, 80)
    S, n, p = np.cov(X.T, bias=True), 150, 80
    trace, square = np.trace(S), np.trace(S @ S)
    rho = ((1 - 2 / p) * square + trace**2) / ((n + 1 - 2 / p) * (square - trace**2 / p))
    assert oas_shrinkage(S, n) == pytest.approx(min(1, rho), rel=1e-12)
    assert oas_shrinkage(S, n) == pytest.approx(oas(X)[1], rel=0.02)


def test_oas_gives_everything_to_the_sphere_when_nothing_is_known() -> None:
    assert oas_shrinkage(np.eye(4), 100) == 1
    assert oas_shrinkage(np.diag([1.0, 0, 0, 0]), 0) == 1


def test_shrinking_keeps_the_trace() -> None:
    S = np.diag([4.0, 1.0, 0.0])
    np.testing.assert_allclose(shrink(S, 0.3), 0.7 * S + 0.3 * 5 / 3 * np.eye(3))
    np.testing.assert_array_equal(shrink(S, 0), S)


def test_the_inverse_comes_with_its_determinant_or_is_refused() -> None:
    A = np.random.default_rng(0).normal(size=(6, 9))
    matrix, logdet = inverse(A @ A.T, "same")
    np.testing.assert_allclose(matrix @ A @ A.T, np.eye(6), atol=1e-9)
    assert logdet == pytest.approx(np.linalg.slogdet(A @ A.T)[1])
    for singular in (A.T @ A, np.zeros((2, 2))):
        with pytest.raises(InputError, match=r"covariance of different differences is singular.*shrinkage='auto'"):
            inverse(singular, "different")


def test_signed_factors_rebuild_the_matrix_and_drop_null_directions() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    matrix = (basis * [3.0, 1.0, 0.0, 0.0, -0.5, -2.0]) @ basis.T
    positive, negative = signed_factors(matrix)
    assert (positive.shape, negative.shape) == ((6, 2), (6, 2))
    np.testing.assert_allclose(positive @ positive.T - negative @ negative.T, matrix, atol=1e-14)
    largest = np.abs(positive).argmax(axis=0)
    assert (positive[largest, [0, 1]] > 0).all()
