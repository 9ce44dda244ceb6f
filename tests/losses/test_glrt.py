"""Eq. 12 against a double loop over pairs, its scale, its sign, what the paper's setting does, and its statistics."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from tests.losses.batches import DIMENSION, batch, metric

from lookdown import Cosine, GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.errors import InputError, NotFittedError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.losses.glrt import GaussianStatistics, GLRTLoss, MixtureStatistics, statistics_like, statistics_of
from lookdown.metrics import Metric, MirroredMixture

METRICS = [
    (kind, normalize, indefinite)
    for kind, indefinite in [("gaussian", "clip"), ("gaussian", "keep"), ("mixture", ""), ("diagonal mixture", "")]
    for normalize in (True, False)
]


def glrt(fitted: Metric, **options: Any) -> GLRTLoss:
    loss = GLRTLoss(**options).double()
    loss.set_metric(fitted)
    return loss


def eq_12(exponents: Any, y: torch.Tensor) -> float:
    """log(1 + sum over all combinations of a different and a same pair of e^(s_n - s_p)), each pair once."""
    same: list[float] = []
    different: list[float] = []
    for i, j in combinations(range(len(y)), 2):
        (same if y[i] == y[j] else different).append(float(exponents[i, j]))
    return math.log(1 + sum(math.exp(n - p) for n in different for p in same))


@pytest.mark.parametrize(("kind", "normalize", "indefinite"), METRICS)
@pytest.mark.parametrize("temperature", [8.0, 4.0])
def test_it_is_the_formula_on_the_scale_free_score(
    kind: str, normalize: bool, indefinite: str, temperature: float
) -> None:
    x, y = batch()
    x = x if normalize else x / 4
    fitted = metric(kind, normalize, indefinite)
    loss = glrt(fitted, temperature=temperature)
    assert loss.statistics is not None
    scores = fitted.score(x.numpy(), x.numpy())
    relative = (scores - loss.statistics.origin.item()) / loss.statistics.spread.item()
    assert math.isclose(loss(x, y).item(), eq_12(temperature * relative, y), rel_tol=1e-9)
    np.testing.assert_allclose(loss.scores(x), scores, rtol=0, atol=1e-10)


def test_for_a_gaussian_it_is_minus_the_form_over_its_trace() -> None:
    x, y = batch()
    fitted = metric("gaussian", normalize=True)
    assert isinstance(fitted, GaussianLikelihoodRatio)
    rows = (x / x.norm(dim=1, keepdim=True)).numpy()
    trace = np.trace(fitted.matrix_ @ fitted.different_covariance_)
    gaps = rows[:, None] - rows
    exponents = -8 * np.einsum("ijk,kl,ijl->ij", gaps, fitted.matrix_, gaps) / trace
    assert math.isclose(glrt(fitted)(x, y).item(), eq_12(exponents, y), rel_tol=1e-10)


@pytest.mark.parametrize(("kind", "normalize", "indefinite"), METRICS)
@pytest.mark.parametrize("nu", [0.001, 0.03])
def test_the_setting_of_the_paper_is_nu_times_twice_the_score(
    kind: str, normalize: bool, indefinite: str, nu: float
) -> None:
    x, y = batch()
    x = x if normalize else x / 4
    fitted = metric(kind, normalize, indefinite)
    expected = eq_12(nu * 2 * fitted.score(x.numpy(), x.numpy()), y)
    assert math.isclose(glrt(fitted, temperature="paper", nu=nu)(x, y).item(), expected, rel_tol=1e-9)


def test_the_sign_is_right() -> None:
    """Pulling a class together lowers the loss; with the paper's printed matrix it would rise."""
    x, y = batch()
    centres = torch.stack([x[y == label].mean(0) for label in range(5)])
    loss = glrt(metric("gaussian", normalize=False))
    values = [loss(centres[y] + (x - centres[y]) * spread, y).item() for spread in (2.0, 1.0, 0.5, 0.1)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_the_network_cannot_win_by_growing(scale: float) -> None:
    """Embeddings and statistics that grow together leave the scale-free loss as it is; the paper's changes."""
    X, y = GaussianWorld.random(DIMENSION).chips(12, 25, np.random.default_rng(0))
    x, labels = torch.tensor(X[:100:7]), torch.tensor(y[:100:7])

    def value(factor: float, **options: Any) -> float:
        fitted = GaussianLikelihoodRatio(0.1, normalize=False).fit(factor * X, y)
        return float(glrt(fitted, **options)(factor * x, labels))

    assert math.isclose(value(scale), value(1), rel_tol=1e-9)
    frozen = GaussianLikelihoodRatio(0.1, normalize=False).fit(X, y)
    paper = [glrt(frozen, temperature="paper")(factor * x, labels).item() for factor in (1, scale)]
    assert not math.isclose(*paper, rel_tol=1e-3)


@pytest.mark.parametrize("kind", ["gaussian", "mixture"])
def test_on_the_unit_sphere_the_length_of_an_embedding_means_nothing(kind: str) -> None:
    x, y = batch()
    loss = glrt(metric(kind, normalize=True))
    lengths = torch.arange(1, len(y) + 1, dtype=x.dtype)[:, None]
    torch.testing.assert_close(loss(x * lengths, y), loss(x, y), rtol=1e-12, atol=0)


def test_a_mixture_whose_score_is_not_highest_at_zero_trains_all_the_same() -> None:
    """s(0) cancels between the pairs of Eq. 12: it sets the scale alone."""
    fitted = MixtureLikelihoodRatio(2, 2, pairs=500, normalize=False)
    X, y = GaussianWorld.random(2).chips(8, 20, np.random.default_rng(0))
    fitted.fit(X, y)
    # Same pairs differ by about (1, 0) either way, never by nothing; different ones by anything.
    spots = np.array([[1.0, 0.0], [0.9, 0.3]])
    fitted.same_ = MirroredMixture(np.array([0.5, 0.5]), spots, np.stack([0.02 * np.eye(2)] * 2))
    fitted.different_ = MirroredMixture(np.ones(1), np.zeros((1, 2)), 9 * np.eye(2)[None])
    loss = glrt(fitted)
    assert loss.statistics is not None
    peak = fitted.score_differences(spots[:1])[0]
    assert peak > loss.statistics.origin + 20
    assert loss.statistics.spread > 0
    x = torch.tensor(np.random.default_rng(1).normal(size=(6, 2)), requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    values = []
    for _ in range(300):
        value = loss(x, labels)
        values.append(value.item())
        (slope,) = torch.autograd.grad(value, x)
        with torch.no_grad():
            x -= 0.03 * slope / slope.norm()
    assert all(map(math.isfinite, values))
    assert values[-1] < values[0] - 1
    same = loss.scores(x).detach()[[0, 2, 4], [1, 3, 5]]
    assert (same > loss.statistics.origin + 10).all()  # towards the peak of the score, not towards zero


def test_nothing_flows_into_the_statistics_and_nothing_links_to_the_metric() -> None:
    X, y = GaussianWorld.random(DIMENSION).chips(12, 25, np.random.default_rng(0))
    fitted = GLRTLoss.default_metric().fit(X, y)
    loss = glrt(fitted)
    x, labels = batch()
    before = loss(x, labels).item()
    fitted.fit(X * np.linspace(1, 3, DIMENSION), y)
    assert loss(x, labels).item() == before
    loss.set_metric(fitted)
    assert loss(x, labels).item() != before
    assert not list(loss.parameters())


def test_the_default_metric_is_what_trained_well() -> None:
    parameters = GLRTLoss.default_metric().get_params()
    assert (parameters["shrinkage"], parameters["normalize"]) == (0.1, True)


def test_statistics_follow_the_module_and_take_its_type() -> None:
    loss = GLRTLoss()
    loss.set_metric(metric("mixture", normalize=True))
    assert loss.statistics is not None
    assert {t.dtype for t in loss.state_dict().values()} == {torch.float32, torch.bool}
    loss.double()
    loss.set_metric(metric("gaussian", normalize=True))
    assert {t.dtype for t in loss.state_dict().values()} == {torch.float64, torch.bool}


def test_a_state_decides_of_which_kind_the_statistics_are() -> None:
    x, y = batch(dtype=torch.float32)
    loss, other = GLRTLoss(), GLRTLoss()
    loss.set_metric(metric("mixture", normalize=True))
    other.set_metric(metric("gaussian", normalize=False))
    other.load_state_dict(loss.state_dict())
    assert torch.equal(loss(x, y), other(x, y))
    holder, twin = (torch.nn.ModuleDict({"metric_loss": each}) for each in (loss, GLRTLoss()))
    twin.load_state_dict(holder.state_dict())
    assert torch.equal(twin["metric_loss"](x, y), loss(x, y))
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict(GLRTLoss().state_dict())
    assert torch.equal(loss(x, y), other(x, y))


def test_a_state_with_gaps_leaves_the_statistics_alone() -> None:
    x, y = batch()
    holder = torch.nn.ModuleDict({"metric": glrt(metric("gaussian", normalize=True)), "other": torch.nn.Linear(2, 2)})
    before = holder["metric"](x, y)
    holder.load_state_dict({"other.bias": torch.ones(2)}, strict=False)
    assert torch.equal(holder["metric"](x, y), before)
    other = glrt(metric("mixture", normalize=True))
    holder.load_state_dict({f"metric.{name}": value for name, value in other.state_dict().items()}, strict=False)
    assert torch.equal(holder["metric"](x, y), other(x, y))


@pytest.mark.parametrize("kind", ["gaussian", "mixture"])
@pytest.mark.parametrize("temperature", [8.0, "paper"])
def test_discussion_2_on_the_path_of_the_loss_itself(kind: str, temperature: Any, monkeypatch: Any) -> None:
    """The slopes of its own scores are B-6 and B-7, with the scale and the sign that it gives them."""
    x, y = batch()
    fitted = metric(kind, normalize=True)
    loss = glrt(fitted, temperature=temperature)
    assert loss.statistics is not None
    of_batch, seen = loss.statistics.gains, []

    def gains(embeddings: torch.Tensor) -> torch.Tensor:
        scores = of_batch(embeddings)
        scores.retain_grad()
        seen.append(scores)
        return scores

    monkeypatch.setattr(loss.statistics, "gains", gains)
    loss(x.requires_grad_(), y).backward()
    (scores,) = seen
    assert scores.grad is not None
    slopes = scores.grad + scores.grad.T  # a pair stands in both orders
    nu = 2 * loss.nu if temperature == "paper" else temperature / loss.statistics.spread.item()
    s = fitted.score(x.detach().numpy(), x.detach().numpy())
    pairs = list(combinations(range(len(y)), 2))
    same = [s[i, j] for i, j in pairs if y[i] == y[j]]
    different = [s[i, j] for i, j in pairs if y[i] != y[j]]
    h = 1 + sum(math.exp(nu * (n - p)) for n in different for p in same)
    for i, j in pairs:
        if y[i] == y[j]:
            expected = -nu * sum(math.exp(nu * (n - s[i, j])) for n in different) / h
        else:
            expected = nu * sum(math.exp(nu * (s[i, j] - p)) for p in same) / h
        assert math.isclose(slopes[i, j].item(), expected, rel_tol=1e-7)


def test_what_cannot_be_used_is_refused() -> None:
    x, y = batch()
    with pytest.raises(NotFittedError, match="no statistics yet; call set_metric"):
        GLRTLoss()(x, y)
    with pytest.raises(NotFittedError, match="this GaussianLikelihoodRatio is not fitted yet"):
        GLRTLoss().set_metric(GaussianLikelihoodRatio())
    with pytest.raises(InputError, match="or a MixtureLikelihoodRatio, got Cosine"):
        GLRTLoss().set_metric(Cosine().fit(x.numpy()))
    with pytest.raises(InputError, match="fitted on 6 dimensions, the embeddings have 5"):
        glrt(metric("gaussian", normalize=True))(x[:, :5], y)
    with pytest.raises(InputError, match="temperature must be a number, got 'papers'"):
        GLRTLoss(temperature="papers")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="temperature must be above 0, got 0"):
        GLRTLoss(temperature=0)


def test_statistics_that_point_nowhere_are_refused_where_the_scale_hangs_on_them() -> None:
    fitted = GaussianLikelihoodRatio(0.1, indefinite="keep", normalize=False)
    X, y = GaussianWorld.random(DIMENSION).chips(12, 25, np.random.default_rng(0))
    fitted.fit(X, y)
    fitted.matrix_ = -fitted.matrix_
    with pytest.raises(InputError, match="different pairs score no lower than equal embeddings"):
        GLRTLoss().set_metric(fitted)
    GLRTLoss(temperature="paper").set_metric(fitted)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    ("kind", "indefinite"), [("gaussian", "clip"), ("gaussian", "keep"), ("mixture", ""), ("diagonal mixture", "")]
)
def test_scores_are_those_of_the_metric(kind: str, indefinite: str, normalize: bool) -> None:
    fitted = metric(kind, normalize, indefinite)
    x, _ = batch()
    x = x + 3  # off the origin, where products of raw vectors would lose digits
    statistics = statistics_of(fitted)
    found = (statistics.gains(x) + statistics.origin).numpy()
    np.testing.assert_allclose(found, fitted.score(x.numpy(), x.numpy()), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.diag(found), statistics.origin, rtol=0, atol=1e-10)


def test_directions_in_which_same_pairs_spread_wider_count_the_other_way() -> None:
    X, y = GaussianWorld.random(DIMENSION).chips(12, 8, np.random.default_rng(0))
    X[:, 0] = np.random.default_rng(1).normal(size=len(X)) * np.tile([1, 3], len(X) // 2)
    kept = GaussianLikelihoodRatio(indefinite="keep", normalize=False).fit(X, y)
    statistics = GaussianStatistics.of(kept)
    assert (statistics.signs < 0).any()
    x = torch.tensor(X[:9])
    np.testing.assert_allclose(statistics.gains(x) + statistics.origin, kept.score(X[:9], X[:9]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
@pytest.mark.parametrize("indefinite", ["clip", "keep"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_mean_over_different_pairs_of_a_gaussian_is_exact(indefinite: Any, normalize: bool, weighting: Any) -> None:
    X, y = GaussianWorld.random(4).chips(6, 5, np.random.default_rng(0))
    keep = np.random.default_rng(1).random(len(y)) < 0.8  # classes of unequal size
    X, y = X[keep], y[keep]
    fitted = GaussianLikelihoodRatio(0.1, indefinite, normalize, weighting).fit(X, y)
    falls: dict[tuple[int, int], list[float]] = {}
    for i, j in combinations(range(len(y)), 2):
        if y[i] != y[j]:
            falls.setdefault((y[i], y[j]), []).append(fitted.offset_ - fitted.score(X[[i]], X[[j]])[0, 0])
    means = [np.mean(each) for each in falls.values()]
    sizes = [len(each) for each in falls.values()] if weighting == "pairs" else None
    assert statistics_of(fitted).spread.item() == pytest.approx(np.average(means, weights=sizes), rel=1e-10)


def test_with_one_component_each_a_mixture_is_the_gaussian() -> None:
    X, y = GaussianWorld.random(4).chips(10, 8, np.random.default_rng(0))
    gaussian = GaussianStatistics.of(GaussianLikelihoodRatio(0.1, indefinite="keep").fit(X, y))
    mixture = MixtureStatistics.of(MixtureLikelihoodRatio(1, 1, shrinkage=0.1).fit(X, y))
    x = torch.tensor(X[:9])
    torch.testing.assert_close(mixture.gains(x), gaussian.gains(x), rtol=0, atol=1e-10)
    torch.testing.assert_close(mixture.spread, gaussian.spread, rtol=1e-10, atol=0)
    torch.testing.assert_close(mixture.origin, gaussian.origin, rtol=1e-10, atol=1e-10)


def test_the_mean_over_different_pairs_of_a_mixture_is_that_of_the_pairs_it_was_fitted_on() -> None:
    """Exactly, it is the mean of draws from the fitted law; to a few per cent, that of the training pairs."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    X = 2 * rng.normal(size=(6, 4))[y] + rng.normal(size=(240, 4))
    fitted = MixtureLikelihoodRatio(1, 6, pairs="all", normalize=False).fit(X, y)
    statistics = MixtureStatistics.of(fitted)
    drawn = fitted.sample(16_384, "different", seed=0)
    origin = fitted.score_differences(np.zeros((1, 4)))[0]
    loop = np.mean([origin - fitted.score_differences(row[None])[0] for row in drawn[:2000]])
    assert statistics.spread.item() == pytest.approx(origin - fitted.score_differences(drawn).mean(), rel=1e-12)
    assert statistics.spread.item() == pytest.approx(loop, rel=0.05)
    pairs = [(i, j) for i, j in combinations(range(240), 2) if y[i] != y[j]]
    first, second = np.array(pairs).T
    exact = np.mean(origin - fitted.score_pairs(X[first], X[second]))
    assert statistics.spread.item() == pytest.approx(exact, rel=0.03)
    assert MixtureStatistics.of(fitted).spread == statistics.spread


@pytest.mark.parametrize("kind", ["gaussian", "mixture", "diagonal mixture"])
def test_gradients_and_storage(kind: str) -> None:
    statistics = statistics_of(metric(kind, normalize=True))
    x, _ = batch()
    assert torch.autograd.gradcheck(statistics.gains, x[:4].clone().requires_grad_())
    assert not any(tensor.requires_grad for tensor in statistics.state_dict().values())
    assert not list(statistics.parameters())
    room = statistics_like(statistics.state_dict())
    room.load_state_dict(statistics.state_dict())
    assert type(room) is type(statistics)
    assert room.dimension == statistics.dimension == DIMENSION
    assert torch.equal(room.gains(x), statistics.gains(x))


def test_near_copies_keep_their_digits_in_float32() -> None:
    statistics = statistics_of(metric("gaussian", normalize=False)).float()
    x, _ = batch(dtype=torch.float32)
    x = 1000 + x * 0.01
    exact = statistics_of(metric("gaussian", normalize=False)).gains(x.double())
    torch.testing.assert_close(statistics.gains(x).double(), exact, rtol=1e-4, atol=1e-5 * exact.abs().max().item())
