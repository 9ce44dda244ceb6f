"""Pooling against loops written from the formula."""

from __future__ import annotations

import pytest
import torch

from lookdown.networks.pooling import AveragePooling, GeneralizedMean, build_pooling


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
