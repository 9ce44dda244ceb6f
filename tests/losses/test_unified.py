"""The unified loss against a double loop over pairs, and Discussion 2 of the paper."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from tests.losses.batches import batch
from torch import Tensor

from lookdown.losses import UnifiedLoss
from lookdown.losses.pairs import Pairs
from lookdown.losses.unified import contrast


def eq_12(same: list[float], different: list[float]) -> float:
    """log(1 + sum over all combinations of e^(s_n - s_p)), as the paper prints it."""
    return math.log(1 + sum(math.exp(n - p) for n in different for p in same))


@pytest.mark.parametrize(("temperature", "margin"), [(8.0, 0.0), (0.001, 0.0), (64.0, 0.25)])
def test_it_is_the_formula(temperature: float, margin: float) -> None:
    x, y = batch()
    same: list[float] = []
    different: list[float] = []
    for i, j in combinations(range(len(y)), 2):
        s = float(x[i] @ x[j] / (x[i].norm() * x[j].norm()))
        (same if y[i] == y[j] else different).append(temperature * s)
    expected = eq_12(same, [s + temperature * margin for s in different])
    assert (len(same), len(different)) == (7, 38)
    value = UnifiedLoss(temperature=temperature, margin=margin)(x, y).item()
    assert math.isclose(value, expected, rel_tol=1e-9)


def scores_of_pairs(seed: int) -> tuple[Tensor, list[tuple[int, int]], Tensor]:
    """Return a score for each unordered pair of a batch, the pairs, and the labels."""
    _, y = batch()
    pairs = list(combinations(range(len(y)), 2))
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(pairs), generator=generator, dtype=torch.float64, requires_grad=True), pairs, y


def loss_of_scores(s: Tensor, pairs: list[tuple[int, int]], y: Tensor, nu: float) -> Tensor:
    first, second = torch.tensor(pairs).T
    matrix = torch.zeros(len(y), len(y), dtype=s.dtype).index_put((first, second), s)
    return contrast(nu * (matrix + matrix.T), Pairs.of(y))


@pytest.mark.parametrize("nu", [0.001, 1.0, 8.0])
@pytest.mark.parametrize("seed", range(3))
def test_discussion_2_the_gradients_are_b_6_and_b_7(nu: float, seed: int) -> None:
    s, pairs, y = scores_of_pairs(seed)
    value = loss_of_scores(s, pairs, y, nu)
    (slopes,) = torch.autograd.grad(value, s)
    is_same = [bool(y[i] == y[j]) for i, j in pairs]
    positives = [v for v, same in zip(s.tolist(), is_same, strict=True) if same]
    negatives = [v for v, same in zip(s.tolist(), is_same, strict=True) if not same]
    h = 1 + sum(math.exp(nu * (n - p)) for n in negatives for p in positives)  # B-5
    assert math.isclose(value.item(), math.log(h), rel_tol=1e-10)
    for score, same, slope in zip(s.tolist(), is_same, slopes.tolist(), strict=True):
        if same:
            expected = -nu * math.exp(-nu * score) * sum(math.exp(nu * n) for n in negatives) / h  # B-6
        else:
            expected = nu * math.exp(nu * score) * sum(math.exp(-nu * p) for p in positives) / h  # B-7
        assert math.isclose(slope, expected, rel_tol=1e-9)


@pytest.mark.parametrize("nu", [0.001, 1.0, 8.0])
def test_discussion_2_harder_pairs_get_larger_gradients(nu: float) -> None:
    """Difficult same pairs score low; difficult different pairs score high (B-4 has that the wrong way round)."""
    s, pairs, y = scores_of_pairs(0)
    (slopes,) = torch.autograd.grad(loss_of_scores(s, pairs, y, nu), s)
    is_same = torch.tensor([bool(y[i] == y[j]) for i, j in pairs])
    same, different = slopes[is_same][s[is_same].argsort()], slopes[~is_same][s[~is_same].argsort()]
    assert (same < 0).all()
    assert (different > 0).all()
    assert (same.diff() > 0).all()  # the lowest score is pulled up hardest
    assert (different.diff() > 0).all()  # the highest score is pushed down hardest
