"""The likelihood ratio of kinds: against sums over kinds written from the formula, and what a ratio must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

from lookdown import Cosine, GaussianLikelihoodRatio, KindLikelihoodRatio, PairMoments, evaluate, load_metric
from lookdown.errors import InputError, UnsupportedOperationError
from lookdown.metrics.covariance import oas_shrinkage, shrink

Array = NDArray[np.float64]


def blobs(
    kinds: int = 4, chips: int = 12, dim: int = 3, seed: int = 0, spread: float = 0.4
) -> tuple[Array, NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(kinds, dim))
    codes = np.repeat(np.arange(kinds), chips)
    return centres[codes] + spread * rng.normal(size=(len(codes), dim)), np.array([f"kind {c}" for c in codes])


def oracle(
    X: Array, y: NDArray[Any], a: Array, b: Array, *, novelty: float, temperature: float, weighting: str
) -> tuple[Array, Array]:
    """Return log ratios and posteriors by loops over rows and kinds, from densities."""
    labels = sorted(set(y.tolist()))
    groups = {c: X[y == c] for c in labels}
    n, d = len(X), X.shape[1]
    within = sum((g - g.mean(0)).T @ (g - g.mean(0)) for g in groups.values()) / (n - len(labels))
    gaussian = GaussianLikelihoodRatio(shrinkage=0.2, normalize=False, weighting="classes").fit(X, y)
    total = gaussian.different_covariance_ / 2
    within, total = (0.8 * s + 0.2 * np.trace(s) / d * np.eye(d) for s in (within, total))
    priors = {c: (1 - novelty) * (len(g) / n if weighting == "pairs" else 1 / len(labels)) for c, g in groups.items()}
    centre = np.mean([g.mean(0) for g in groups.values()], axis=0)
    fallback = GaussianLikelihoodRatio(shrinkage=0.2, normalize=False).fit(X, y)

    def posteriors(x: Array) -> tuple[dict[str, float], float]:
        weights = {
            c: priors[c] * multivariate_normal(g.mean(0), within * (1 + 1 / len(g))).pdf(x) ** (1 / temperature)
            for c, g in groups.items()
        }
        none = novelty * multivariate_normal(centre, total).pdf(x) ** (1 / temperature)
        whole = sum(weights.values()) + none
        return {c: w / whole for c, w in weights.items()}, none / whole

    scores = np.empty((len(a), len(b)))
    for i, x in enumerate(a):
        for j, z in enumerate(b):
            (px, none_x), (pz, none_z) = posteriors(x), posteriors(z)
            ratio = sum(px[c] * pz[c] / priors[c] for c in labels)
            if novelty:
                ratio += none_x * none_z / novelty * np.exp(fallback.score([x], [z])[0, 0] / temperature)
            scores[i, j] = np.log(ratio)
    return scores, np.array([[posteriors(x)[0][c] for c in labels] for x in a])


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
@pytest.mark.parametrize(("novelty", "temperature"), [(0.0, 1.0), (0.2, 1.0), (0.2, 3.0)])
def test_scores_and_posteriors_are_the_sums_over_kinds(weighting: Any, novelty: float, temperature: float) -> None:
    X, y = blobs()
    keep = np.r_[0:20, 22:27, 30:48]  # kinds of different size
    X, y = X[keep], y[keep]
    a, b = blobs(seed=1)[0][::7], blobs(seed=2)[0][::9]
    metric = KindLikelihoodRatio(novelty, temperature, 0.2, weighting, normalize=False).fit(X, y)
    scores, posteriors = oracle(X, y, a, b, novelty=novelty, temperature=temperature, weighting=weighting)
    np.testing.assert_allclose(metric.score(a, b), scores, atol=1e-8)
    np.testing.assert_allclose(metric.score_pairs(a[:4], b[:4]), np.diag(scores[:4, :4]), atol=1e-8)
    np.testing.assert_allclose(metric.predict_proba(a), posteriors, atol=1e-10)


def test_the_score_of_a_kind_is_that_of_an_example_which_is_surely_of_it() -> None:
    X, y = blobs()
    keep = np.r_[0:20, 22:27, 30:48]  # kinds of different size
    X, y = X[keep], y[keep]
    a = blobs(seed=1)[0]
    pseudo = KindLikelihoodRatio(novelty=0, temperature=2.0).fit(X, y)
    moments = PairMoments.of(X, y, normalize=True)
    with_pseudo_kinds = KindLikelihoodRatio(0.2, weighting="pairs").fit_moments(moments, fallback=pseudo)
    for metric in (KindLikelihoodRatio(0.2, weighting="pairs").fit(X, y), with_pseudo_kinds):
        shares = metric.predict_proba(a)
        for position, kind in enumerate(("kind 0", "kind 1", "kind 2", "kind 3")):
            prior = 0.8 * (y == kind).sum() / len(y)
            np.testing.assert_allclose(metric.score_kind(kind, a), np.log(shares[:, position] / prior), atol=1e-9)
    surely = X[y == "kind 1"].mean(axis=0)[None]
    sure = KindLikelihoodRatio(temperature=0.01).fit(X, y)
    np.testing.assert_allclose(np.exp(sure.score(surely, a)[0]), np.exp(sure.score_kind("kind 1", a)), atol=1e-9)
    with pytest.raises(InputError, match=r"knows no kind 'kin 1'; did you mean kind 1\?"):
        sure.score_kind("kin 1", a)


def test_by_default_the_shared_covariance_is_shrunk_for_as_many_chips_as_are_free() -> None:
    X, y = blobs(dim=6)
    metric = KindLikelihoodRatio(normalize=False).fit(X, y)
    centred = X - np.stack([X[y == c].mean(0) for c in metric.kinds_])[np.searchsorted(metric.kinds_, y)]
    within = centred.T @ centred / (48 - 4)
    np.testing.assert_allclose(metric._models[0].within, shrink(within, oas_shrinkage(within, 44)))


def test_the_score_is_symmetric_and_a_likelihood_ratio_of_many_examples_adds_up() -> None:
    X, y = blobs()
    metric = KindLikelihoodRatio(temperature=2.0).fit(X, y)
    np.testing.assert_allclose(metric.score(X, X), metric.score(X, X).T, atol=1e-10)
    gallery = blobs(seed=3)[0]
    one = metric.score_query(X[:1], [1.0], gallery)
    np.testing.assert_allclose(one, metric.score(X[:1], gallery)[0], atol=1e-10)
    np.testing.assert_allclose(metric.score_query(X[[0, 0]], [0.5, 0.5], gallery), one, atol=1e-10)
    surer = metric.score_query(X[y == "kind 0"], np.ones(12), gallery)
    posteriors = metric.predict_proba(gallery)
    assert np.corrcoef(np.exp(surer), posteriors[:, 0])[0, 1] > 0.999, "twelve examples leave no doubt of the kind"


def test_shards_in_any_order_give_the_same_metric() -> None:
    X, y = blobs()
    whole = KindLikelihoodRatio().fit(X, y)
    order = np.random.default_rng(5).permutation(len(X))
    shards = [PairMoments.of(X[part], y[part], normalize=True) for part in np.array_split(order, 5)]
    merged = KindLikelihoodRatio().fit_moments(shards[3] + shards[0] + shards[4] + shards[1] + shards[2])
    np.testing.assert_allclose(merged.score(X, X), whole.score(X, X), atol=1e-8)


def test_where_no_kind_is_known_it_is_the_ratio_of_differences() -> None:
    X, y = blobs(dim=5)
    far = 40 + blobs(seed=8, dim=5)[0]
    metric = KindLikelihoodRatio(novelty=0.5, temperature=1.0, normalize=False).fit(X, y)
    assert (metric.predict_proba(far) < 1e-20).all()
    differences = GaussianLikelihoodRatio(normalize=False).fit(X, y).score(far, far)
    np.testing.assert_allclose(metric.score(far, far), differences - np.log(0.5), atol=1e-8)
    nearly_nothing_known = KindLikelihoodRatio(novelty=1 - 1e-12, temperature=1.0, normalize=False).fit(X, y)
    np.testing.assert_allclose(
        nearly_nothing_known.score(X, X), GaussianLikelihoodRatio(normalize=False).fit(X, y).score(X, X), atol=1e-5
    )


def test_the_ratio_is_1_on_average_over_independent_pairs() -> None:
    """Drawn from the model itself, by kinds known from so many chips that their means have no error."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    codes = rng.integers(3, size=60_000)
    X = centres[codes] + rng.normal(size=(60_000, 2))
    metric = KindLikelihoodRatio(novelty=0, temperature=1.0, shrinkage=0.0, normalize=False).fit(X, codes)
    fresh = rng.integers(3, size=(2, 200_000))
    first, second = (centres[kinds] + rng.normal(size=(200_000, 2)) for kinds in fresh)
    ratios = np.exp(metric.score_pairs(first, second))
    assert ratios.mean() == pytest.approx(1, abs=0.02)
    same, share = fresh[0] == fresh[1], ratios / 3  # P(same | x, y) for three kinds as frequent as each other
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 1.0)):
        chosen = (share > low) & (share <= high)
        assert same[chosen].mean() == pytest.approx(share[chosen].mean(), abs=0.02), "it says how probable *same* is"


def test_a_kind_in_two_halves_that_coincide_counts_as_one() -> None:
    X, y = blobs(kinds=3, chips=40)
    halves = np.where((y == "kind 0") & (np.arange(len(y)) % 2 == 0), "kind 0 again", y)
    whole = KindLikelihoodRatio(0, 1.0, weighting="pairs", normalize=False).fit(X, y)
    split = KindLikelihoodRatio(0, 1.0, weighting="pairs", normalize=False).fit(X, halves)
    likely = whole.score(X, X) > -2
    np.testing.assert_allclose(split.score(X, X)[likely], whole.score(X, X)[likely], atol=0.5)
    assert np.corrcoef(split.score(X, X).ravel(), whole.score(X, X).ravel())[0, 1] > 0.99


def test_thousands_of_kinds_of_two_chips_are_told_apart() -> None:
    X, y = blobs(kinds=3000, chips=2, dim=24, spread=0.05)
    metric = KindLikelihoodRatio().fit(X, y)
    scores = metric.score(X[:50], X)
    assert np.isfinite(scores).all()
    scores[np.arange(50), np.arange(50)] = -np.inf
    assert (scores.argmax(axis=1) == np.arange(50) ^ 1).mean() > 0.95, "the best of the others is the other chip"


def test_partitions_are_averaged() -> None:
    X, y = blobs(kinds=6)
    coarse = np.where(y < "kind 3", "a", "b")
    fit = KindLikelihoodRatio(novelty=0, temperature=2.0)
    each = [fit.fit(X, labels).score(X, X) for labels in (y, coarse)]
    moments = [PairMoments.of(X, labels, normalize=True) for labels in (y, coarse)]
    both = KindLikelihoodRatio(novelty=0, temperature=2.0).fit_moments(*moments)
    np.testing.assert_allclose(np.exp(both.score(X, X)), np.mean(np.exp(each), axis=0), rtol=1e-8)
    with pytest.raises(UnsupportedOperationError, match="this metric has pseudo-kinds"):
        both.predict(X)
    with pytest.raises(InputError, match="use novelty=0"):
        KindLikelihoodRatio().fit_moments(*moments)


def test_chips_of_no_kind_may_be_compared_by_pseudo_kinds(tmp_path: Path) -> None:
    X, y = blobs(kinds=6, dim=5)
    known = y < "kind 3"
    pseudo = KindLikelihoodRatio(novelty=0, temperature=2.0).fit(X, y)
    labelled = PairMoments.of(X[known], y[known], normalize=True)
    metric = KindLikelihoodRatio(novelty=0.5).fit_moments(labelled, fallback=pseudo)
    new = X[~known]
    known_kinds, priors = metric.predict_proba(new), 0.5 / 3
    none = 1 - known_kinds.sum(axis=1)
    expected = np.exp(pseudo.score(new, new)) * np.outer(none, none) / 0.5
    np.testing.assert_allclose(np.exp(metric.score(new, new)), known_kinds @ known_kinds.T / priors + expected)
    query = metric.score_query(new[:1], [1.0], X)
    np.testing.assert_allclose(query, metric.score(new[:1], X)[0], atol=1e-10)
    metric.save(tmp_path / "metric")
    np.testing.assert_array_equal(load_metric(tmp_path / "metric").score(X, X), metric.score(X, X))


def test_on_digits_known_kinds_are_found_far_better_than_by_differences() -> None:
    X, y = load_digits(return_X_y=True)
    train, test = np.arange(900), np.arange(900, 1797)
    found = {
        type(metric).__name__: evaluate(metric.fit(X[train], y[train]), X[test], y[test], X[test], y[test])
        for metric in (KindLikelihoodRatio(), GaussianLikelihoodRatio(), Cosine())
    }
    scores = {name: one.mean_average_precision for name, one in found.items()}
    assert scores["KindLikelihoodRatio"] > scores["GaussianLikelihoodRatio"] + 0.05 > scores["Cosine"] + 0.1


def test_far_from_every_kind_the_nearest_is_predicted() -> None:
    X, y = blobs(kinds=4, dim=6, seed=3, spread=0.2)
    metric = KindLikelihoodRatio(temperature=1.0, normalize=False).fit(X, y)
    far = np.stack([30 * X[y == kind].mean(axis=0) for kind in metric.kinds_])
    assert metric.predict_proba(far).sum() < 1e-12
    twin = KindLikelihoodRatio(novelty=0, temperature=1.0, normalize=False).fit(X, y)
    assert (metric.predict(far) == twin.predict(far)).all(), "which kind is nearest does not depend on novelty"
    assert len(set(metric.predict(far).tolist())) > 1


def test_temper_listens_to_chips_that_are_surely_wrong() -> None:
    X, y = blobs(kinds=5, chips=60, dim=10, spread=0.02)
    held_out, labels = blobs(kinds=5, chips=60, dim=10, spread=0.6)
    metric = KindLikelihoodRatio(normalize=False).fit(X, y).temper(held_out, labels)
    codes, temperatures = np.searchsorted(metric.kinds_, labels), 2.0 ** np.arange(0, 8.5, 0.5)
    within = metric._models[0].within
    logs = np.stack(
        [multivariate_normal(m, within * (1 + 1 / 60)).logpdf(held_out) for m in metric._models[0].means], axis=1
    )
    surprises = [
        np.mean(np.logaddexp.reduce(logs / t, axis=1) - logs[np.arange(len(codes)), codes] / t) for t in temperatures
    ]
    assert metric.temperature_ == temperatures[int(np.argmin(surprises))] > 16


def test_many_examples_of_a_new_kind_make_it_surer_that_it_is_new() -> None:
    """Where the exact answer is known: kinds drawn from a Gaussian, so new kinds lie among the known ones."""
    rng, surer = np.random.default_rng(0), []
    for _ in range(20):
        centres = rng.normal(size=(12, 8))
        codes = np.repeat(np.arange(12), 30)
        metric = KindLikelihoodRatio(novelty=0.5, temperature=1.0, normalize=False)
        metric.fit(centres[codes] + 0.5 * rng.normal(size=(360, 8)), codes)
        new = rng.normal(size=8) + 0.5 * rng.normal(size=(10, 8))
        one = np.exp(metric.pooled_terms(new[:1], np.ones(1)).none[0]) * np.sqrt(0.5)
        ten = np.exp(metric.pooled_terms(new, np.ones(10)).none[0]) * np.sqrt(0.5)
        surer.append(ten >= one - 1e-9)
    assert np.mean(surer) >= 0.9


def test_temper_chooses_what_makes_held_out_labels_likeliest() -> None:
    X, y = blobs(kinds=5, chips=30, dim=8)
    held_out, labels = blobs(kinds=5, chips=30, dim=8, seed=0, spread=1.2)
    metric = KindLikelihoodRatio(temperature=1.0).fit(X, y).temper(held_out, labels)
    assert metric.temperature_ > 1, "chips that scatter more than those of the fit make it less sure"
    own = np.searchsorted(metric.kinds_, labels)

    def surprise(temperature: float) -> float:
        twin = KindLikelihoodRatio(temperature=temperature).fit(X, y)
        shares = twin.predict_proba(held_out)
        return -float(np.log(shares[np.arange(len(own)), own] / shares.sum(axis=1)).mean())

    assert surprise(metric.temperature_) <= min(surprise(t) for t in (1.0, 2.0, 4.0, 8.0, 16.0)) + 1e-9
    assert metric.temper([*held_out, held_out[0]], [*labels, "unheard of"]).temperature_ == metric.temperature_


def test_what_is_of_no_kind_is_left_to_none_of_these() -> None:
    X, y = blobs(kinds=3, chips=40)
    metric = KindLikelihoodRatio(novelty=0.3, temperature=1.0, normalize=False).fit(X, y)
    assert (metric.predict(X) == y).mean() > 0.8
    assert metric.predict_proba(X + 30).sum(axis=1).max() < 1e-9
    closed = KindLikelihoodRatio(novelty=0, temperature=1.0, normalize=False).fit(X, y)
    np.testing.assert_allclose(closed.predict_proba(X + 30).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(3), ["a", "a", "a"], "all 3 samples are of 1 class"),
        (np.eye(3), ["a", "b", "c"], "each of the 3 classes has a single sample"),
        ([[1.0, np.nan], [0.0, 1.0]], ["a", "b"], "X contains NaN in row 0"),
        ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], ["a", "a", "b", "b"], "identical to rounding"),
        ([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], ["a", "a", "b"], "zero vector in row 1"),
    ],
)
def test_data_without_kinds_are_refused_by_name(X: Any, y: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KindLikelihoodRatio().fit(X, y)


def test_background_is_none_of_the_kinds_and_cannot_be_all_there_is(tmp_path: Path) -> None:
    X, y = blobs(kinds=4)
    y = np.where(y == "kind 3", [f"empty {row}" for row in range(len(y))], y)
    empty = [label for label in y.tolist() if label.startswith("empty")]
    moments = PairMoments.of(X, y, normalize=True)
    metric = KindLikelihoodRatio().fit_moments(moments, background=empty)
    assert metric.kinds_.tolist() == ["kind 0", "kind 1", "kind 2"]
    assert metric.predict_proba(X).shape == (48, 3)
    metric.save(tmp_path / "metric")
    np.testing.assert_array_equal(load_metric(tmp_path / "metric").score(X, X), metric.score(X, X))
    with pytest.raises(InputError, match="needs labelled kinds and a novelty above 0"):
        KindLikelihoodRatio(novelty=0).fit_moments(moments, background=empty)
    with pytest.raises(InputError, match="every label is that of background"):
        KindLikelihoodRatio().fit_moments(moments, background=moments.classes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"novelty": 1.0}, "novelty must be a share from 0"),
        ({"temperature": 0}, "temperature must be a number above 0"),
        ({"weighting": "chips"}, "weighting must be 'pairs' or 'classes'"),
        ({"shrinkage": 2}, "shrinkage must be 'auto' or a number from 0 to 1"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KindLikelihoodRatio(**parameters).fit(*blobs())


def test_labels_that_are_no_kinds_and_moments_that_are_none_are_refused() -> None:
    X, y = blobs()
    metric = KindLikelihoodRatio().fit(X, y)
    with pytest.raises(InputError, match="none of the labels is a kind"):
        metric.temper(X, np.full(len(X), "unheard of"))
    with pytest.raises(InputError, match="none of the labels is a kind"):
        metric.temper(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="there are no moments to fit to"):
        KindLikelihoodRatio().fit_moments()
    with pytest.raises(InputError, match="fit_moments takes PairMoments, got list"):
        KindLikelihoodRatio().fit_moments([])  # type: ignore[arg-type]
