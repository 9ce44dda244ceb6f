"""Pooling, heads and principal components, against loops written from the formula and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import nn

from lookdown.errors import InputError
from lookdown.networks.layers import (
    AveragePooling,
    FixedProjection,
    GeneralizedMean,
    build_head,
    build_pooling,
    principal_components,
)

X = np.random.default_rng(0).normal(size=(200, 12)) @ np.random.default_rng(1).normal(size=(12, 12)) + 100


def some_features(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 4


def test_average_is_the_mean_of_each_channel() -> None:
    features = some_features(3, 5, 7)
    for i, image in enumerate(features.tolist()):
        for c, channel in enumerate(image):
            assert AveragePooling()(features)[i, c].item() == pytest.approx(sum(channel) / 7, rel=1e-6)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0, 20.0])
def test_the_generalized_mean_is_its_formula(exponent: float) -> None:
    features = some_features(3, 5, 7)
    features[0, 0, :] = 0.0
    features[0, 1, 2] = -3.0
    pooled = GeneralizedMean(exponent).double()(features)
    for i, image in enumerate(features.tolist()):
        for c, channel in enumerate(image):
            powers = [max(value, 1e-6) ** exponent for value in channel]
            expected = (sum(powers) / len(powers)) ** (1 / exponent)
            assert pooled[i, c].item() == pytest.approx(expected, rel=1e-6)


def test_it_lies_between_average_and_maximum_and_does_not_overflow() -> None:
    features = some_features(2, 3, 16).float()
    average, maximum = features.mean(2), features.amax(2)
    torch.testing.assert_close(GeneralizedMean(1.0)(features), average)
    for exponent in (2.0, 8.0, 300.0):
        pooled = GeneralizedMean(exponent)(features)
        assert (pooled >= average).all()
        assert (pooled <= maximum * 1.0001).all()
    torch.testing.assert_close(GeneralizedMean(3000.0)(features * 1e20), maximum * 1e20, rtol=1e-2, atol=0)


def test_the_exponent_is_learnt_and_gradients_are_right() -> None:
    pooling = GeneralizedMean().double()
    assert [name for name, _ in pooling.named_parameters()] == ["log_exponent"]
    assert pooling.exponent.item() == pytest.approx(3)
    features = some_features(2, 3, 4).add(0.1).requires_grad_()
    parameter = pooling.log_exponent

    def pooled(x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.func.functional_call(pooling, {"log_exponent": p}, (x,))
        return result

    assert torch.autograd.gradcheck(pooled, (features, parameter.detach().requires_grad_()))
    zeros = torch.zeros(1, 2, 5, requires_grad=True)  # a dead map
    GeneralizedMean()(zeros).sum().backward()
    assert zeros.grad is not None
    assert zeros.grad.isfinite().all()


def test_half_precision_is_pooled_in_single() -> None:
    features = torch.full((1, 2, 9), 60000.0, dtype=torch.float16)
    for kind in ("average", "gem"):
        pooled = build_pooling(kind)(features)
        assert pooled.dtype == torch.float32
        torch.testing.assert_close(pooled, torch.full((1, 2), 60000.0), rtol=1e-4, atol=0)


def test_heads_have_the_layers_of_the_recipe() -> None:
    linear, mlp = build_head("linear", 10, 4), build_head("mlp", 10, 4)
    assert [type(layer) for layer in linear.children()] == [nn.Linear, nn.BatchNorm1d]
    assert [type(layer) for layer in mlp.children()] == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
    shapes = {name: tuple(value.shape) for name, value in mlp.named_parameters()}
    assert shapes == {
        "0.weight": (256, 10), "1.weight": (256,), "1.bias": (256,), "3.weight": (4, 256), "3.bias": (4,),
    }  # fmt: skip
    assert {name: tuple(value.shape) for name, value in linear.named_parameters()} == {
        "0.weight": (4, 10), "1.weight": (4,), "1.bias": (4,),
    }  # fmt: skip
    features = torch.randn(6, 10, generator=torch.Generator().manual_seed(0))
    for head in (linear, mlp):
        assert head(features).shape == (6, 4)


def test_the_linear_head_is_normalised_in_training() -> None:
    features = torch.randn(500, 10, generator=torch.Generator().manual_seed(0)) * 7 + 3
    embeddings = build_head("linear", 10, 4)(features)
    torch.testing.assert_close(embeddings.mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(embeddings.std(0), torch.ones(4), atol=1e-2, rtol=0)


def test_the_fixed_projection_centres_and_turns_without_whitening() -> None:
    features = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7) + 5
    components = principal_components([features], 3)
    projection = FixedProjection.of(components)
    assert not list(projection.parameters())
    found = projection(torch.from_numpy(features).float()).numpy()
    for row, x in zip(found, features, strict=True):
        expected = [
            sum(a * (v - m) for a, v, m in zip(axis, x, components.mean, strict=True)) for axis in components.axes
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.var(axis=0, ddof=1), components.variances, rtol=1e-4)


def test_a_fixed_projection_is_one_layer_with_its_centre_in_the_bias() -> None:
    projection = FixedProjection(12, 5).double()
    projection.mean.copy_(torch.randn(12))
    projection.axes.copy_(torch.randn(5, 12))
    features = torch.randn(7, 12, dtype=torch.float64)
    torch.testing.assert_close(projection.as_linear()(features), projection(features))


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
