"""Ways to compare embeddings at test time, against formulas written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import multivariate_normal
from tests.lab.paper.smoke import smoke

from lookdown.adaptation import AUTO, AUTO_OF_DIFFERENCES, AdaptationSettings, adapt
from lookdown.evaluation import evaluate
from lookdown.lab.paper.rules import (
    ADAPTED,
    CLASSICAL,
    COSINE,
    DIFFERENCES_ADAPTED,
    KINDS,
    RATIO,
    RULES,
    WHITENED,
    base_clusters,
    kind_ratio,
    plda_scores,
)
from lookdown.lab.paper.tasks import SHIPS, UDA_SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import GaussianLikelihoodRatio, KindLikelihoodRatio
from lookdown.metrics.covariance import oas_shrinkage

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def case() -> Case:
    return smoke().case(UDA_SHIPS, "identity", 0)


def searched(one: Case, rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
    """Rank by squared distances of rows."""
    asked, items = one.roles.query, one.roles.gallery
    scores = -np.square(rows[asked][:, None] - rows[items]).sum(axis=2)
    labels = one.domain.labels
    found = evaluate(scores, None, labels[asked].tolist(), None, labels[items].tolist(), one.domain.background[items])
    return found.mean_average_precision


def test_two_covariances_are_the_ratio_of_joint_densities() -> None:
    rng = np.random.default_rng(0)
    within, between = (part @ part.T + np.eye(3) for part in rng.normal(size=(2, 3, 3)))
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    total = within + between
    one = multivariate_normal(np.zeros(6), np.block([[total, between], [between, total]]))
    apart = multivariate_normal(np.zeros(3), total)
    wanted = [[one.logpdf(np.r_[a, b]) - apart.logpdf(a) - apart.logpdf(b) for b in y] for a in x]
    assert np.allclose(plda_scores(x, y, within, between), wanted)


def test_whitening_is_the_distance_of_whitened_embeddings() -> None:
    one = case()
    rows = one.embeddings / np.linalg.norm(one.embeddings, axis=1, keepdims=True)
    target = rows[one.roles.target]
    covariance = np.cov(target, rowvar=False)
    covariance = 0.99 * covariance + 0.01 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    root = np.linalg.cholesky(np.linalg.inv(covariance))
    assert np.isclose(RULES[WHITENED](one, 0).mean_average_precision, searched(one, rows @ root), atol=1e-6)


def log_densities(one: Case, rows: Indices) -> tuple[NDArray[np.str_], Array]:
    """Return the kinds of the training chips, and the log-density of each row under each, one kind at a time."""
    unit = one.embeddings / np.linalg.norm(one.embeddings, axis=1, keepdims=True)
    train, labels = unit[one.roles.train], one.domain.labels[one.roles.train]
    kinds = np.unique(labels)
    own = [train[labels == kind] for kind in kinds]
    free = len(train) - len(kinds)
    within = sum(((part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) for part in own), np.zeros(())) / free
    amount = oas_shrinkage(within, free)
    within = (1 - amount) * within + amount * np.trace(within) / len(within) * np.eye(len(within))
    each = [multivariate_normal(part.mean(axis=0), within * (1 + 1 / len(part))) for part in own]
    return kinds, np.stack([kind.logpdf(unit[rows]) for kind in each], axis=1)


def test_the_ratio_of_kinds_is_tempered_on_the_kinds_of_the_validation_split() -> None:
    one = smoke().case(SHIPS, "identity", 0)
    held_out = smoke().case(SHIPS, "identity", 0, validation=True)
    kinds, densities = log_densities(held_out, held_out.roles.target)
    known = np.isin(held_out.target_labels, kinds)
    own = np.searchsorted(kinds, held_out.target_labels[known])
    likely = {
        t: np.mean([row[k] / t - np.logaddexp.reduce(row / t) for row, k in zip(densities[known], own, strict=True)])
        for t in 2.0 ** np.arange(0, 8.5, 0.5)
    }
    metric = kind_ratio(one)
    assert metric.temperature_ == max(likely, key=lambda t: likely[t])
    assert metric.novelty == KindLikelihoodRatio().novelty
    assert metric.kinds_.tolist() == sorted(set(one.domain.labels[one.roles.train].tolist()))
    assert not set(held_out.roles.target.tolist()) & set(one.roles.target.tolist()), "chips of the test stay unseen"
    wrong = one.domain.labels.copy()
    wrong[one.roles.target] = "ferry"
    blind = replace(one, domain=replace(one.domain, labels=wrong))
    assert np.array_equal(kind_ratio(blind).score(one.target, one.target), metric.score(one.target, one.target))
    assert RULES[KINDS](one, 0).to_json() == one.evaluate(metric).to_json()


def test_where_kinds_are_unseen_there_is_nothing_to_temper_on() -> None:
    one = case()
    assert one.validation() is None
    assert kind_ratio(one).temperature_ == KindLikelihoodRatio().temperature


@pytest.mark.parametrize(("rule", "settings"), [(ADAPTED, AUTO), (DIFFERENCES_ADAPTED, AUTO_OF_DIFFERENCES)])
def test_adaptation_by_kinds_and_by_differences_have_a_rule_each(rule: str, settings: AdaptationSettings) -> None:
    one = case()
    metric = adapt(one.source, one.target, method=settings, cluster_by=one.steady_target).metric
    assert isinstance(metric, KindLikelihoodRatio if rule == ADAPTED else GaussianLikelihoodRatio)
    assert RULES[rule](one, 0).to_json() == one.evaluate(metric).to_json()


def test_kissme_is_the_corrected_equation_on_embeddings_as_they_are() -> None:
    one = case()
    train = one.roles.train
    metric = GaussianLikelihoodRatio(shrinkage=0.01, normalize=False)
    metric.fit(one.embeddings[train], one.domain.labels[train])
    wanted = searched(one, one.embeddings @ metric.factor_)
    assert np.isclose(CLASSICAL["KISSME"](one, 0).mean_average_precision, wanted, atol=1e-6)


def test_discriminants_are_compared_by_the_cosine_about_the_mean_of_the_training_chips() -> None:
    one = case()
    rows = one.embeddings / np.linalg.norm(one.embeddings, axis=1, keepdims=True)
    train, labels = one.roles.train, one.domain.labels[one.roles.train]
    rows = rows - rows[train].mean(axis=0)
    means = {name: rows[train][labels == name].mean(axis=0) for name in set(labels.tolist())}
    within = np.zeros((rows.shape[1], rows.shape[1]))
    between = np.zeros_like(within)
    for name, mean in means.items():
        own = rows[train][labels == name]
        spread = np.cov(own.T, bias=True)
        spread = 0.9 * spread + 0.1 * np.trace(spread) / len(spread) * np.eye(len(spread))
        within += len(own) / len(train) * spread
        between += len(own) / len(train) * np.outer(mean, mean)
    values, vectors = eigh(between, within)
    mapped = rows @ vectors[:, np.argsort(values)[::-1][: len(means) - 1]]
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    assert np.isclose(CLASSICAL["LDA"](one, 0).mean_average_precision, searched(one, mapped), atol=0.02)


def test_every_rule_ranks_and_rules_differ() -> None:
    one = case()
    found = {name: rule(one, 0).mean_average_precision for name, rule in (RULES | CLASSICAL).items()}
    assert all(0 < value < 1 for value in found.values())
    assert len(set(found.values())) == len(found)
    assert found[COSINE] != found[RATIO]
    assert base_clusters(one) == len(set(one.target_labels.tolist()))
    assert "" in one.target_labels, "background counts as one"
