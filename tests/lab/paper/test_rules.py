"""Ways to compare embeddings at test time, against formulas written out."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.stats import multivariate_normal
from tests.lab.paper.smoke import smoke

from lookdown.evaluation import evaluate
from lookdown.lab.paper.rules import CLASSICAL, COSINE, RATIO, RULES, WHITENED, base_clusters, plda_scores
from lookdown.lab.paper.tasks import UDA_SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import GaussianLikelihoodRatio


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
