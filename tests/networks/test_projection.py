"""Heads: their layers, and the fixed projection against its formula."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lookdown.networks.projection import FixedProjection, build_head, principal_components


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
