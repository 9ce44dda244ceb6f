"""How the embeddings of a network are compared at test time: the paper's ways, ours, and the classical ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lookdown.adaptation import AUTO_OF_DIFFERENCES, CPLFPA, adapt
from lookdown.errors import LowRankWarning
from lookdown.evaluation import Evaluation, evaluate
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, KindLikelihoodRatio
from lookdown.metrics.inputs import unit

__all__ = [
    "ADAPTED",
    "CLASSICAL",
    "COSINE",
    "CPLFPA_AT_TEST",
    "DIFFERENCES_ADAPTED",
    "KINDS",
    "RATIO",
    "RULES",
    "WHITENED",
    "base_clusters",
    "kind_ratio",
    "plda_scores",
]

Array = NDArray[np.float64]
Rule = Callable[[Case, int], Evaluation]  # of a case and a seed

COSINE, RATIO, CPLFPA_AT_TEST = "cosine", "+ GLRT at test", "+ CPLFPA"  # the paper's
KINDS, ADAPTED, DIFFERENCES_ADAPTED = "+ kinds at test", "+ adaptation", "+ adaptation of differences"  # ours
WHITENED = "+ target whitening"


def base_clusters(case: Case) -> int:
    """Return the paper's number of clusters: the classes that are searched, and one for the background."""
    return len(np.unique(case.target_labels))


def _cosine(case: Case, seed: int) -> Evaluation:
    return case.evaluate(Cosine().fit(case.target))


def _ratio(case: Case, seed: int) -> Evaluation:
    return case.evaluate(case.source)


def _cplfpa(case: Case, seed: int) -> Evaluation:
    return case.evaluate(adapt(case.source, case.target, clusters=base_clusters(case), method=CPLFPA, seed=seed).metric)


def _kinds(case: Case, seed: int) -> Evaluation:
    return case.evaluate(kind_ratio(case))


def kind_ratio(case: Case) -> KindLikelihoodRatio:
    """Return the ratio of the kinds of the training chips, as sure as the validation split advises.

    The temperature is chosen on a network that was trained on the training part of that split, and on other places of
    its kinds. Where these are not in it, as in tasks of unseen classes, the temperature is the default.
    """
    held_out = case.validation()
    temperature = KindLikelihoodRatio().temperature
    if held_out is not None:
        on = _fitted_kinds(held_out, temperature).temper(held_out.target, held_out.target_labels)
        temperature = on.temperature_
    return _fitted_kinds(case, temperature)


def _fitted_kinds(case: Case, temperature: float) -> KindLikelihoodRatio:
    train = case.roles.train
    return KindLikelihoodRatio(temperature=temperature).fit(case.embeddings[train], case.domain.labels[train])


def _adapted(case: Case, seed: int) -> Evaluation:
    return case.evaluate(adapt(case.source, case.target, cluster_by=case.steady_target, seed=seed).metric)


def _differences_adapted(case: Case, seed: int) -> Evaluation:
    by, method = case.steady_target, AUTO_OF_DIFFERENCES
    return case.evaluate(adapt(case.source, case.target, method=method, cluster_by=by, seed=seed).metric)


def _whitened(case: Case, seed: int) -> Evaluation:
    """Compare by the inverse covariance of the target, as a whitening would."""
    rows = unit(case.target)
    total = np.asarray(2 * np.cov(rows, rowvar=False), np.float64)
    metric = GaussianLikelihoodRatio(shrinkage=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        # Different pairs that lie anywhere leave the Mahalanobis distance of the same ones.
        metric.fit_covariances(total, 1e6 * total, rows.mean(axis=0, dtype=np.float64), free=(len(rows), len(rows)))
    return case.evaluate(metric)


def _kissme(case: Case, seed: int) -> Evaluation:
    """Köstinger et al. (2012): the corrected Eq. 7, on embeddings as they are."""
    train = case.roles.train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        metric = GaussianLikelihoodRatio(shrinkage=0.01, normalize=False)
        return case.evaluate(metric.fit(case.embeddings[train], case.domain.labels[train]))


def _lda(case: Case, seed: int) -> Evaluation:
    """Fisher's discriminants of the training chips, compared by the cosine."""
    train, asked, searched = case.roles.train, case.roles.query, case.roles.gallery
    rows = unit(case.embeddings)
    rows = rows - rows[train].mean(axis=0)  # `transform` does not: angles would be taken about a far origin
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(rows[train], case.domain.labels[train])
    mapped = unit(lda.transform(rows))
    return _of_scores(case, mapped[asked] @ mapped[searched].T)


def _plda(case: Case, seed: int) -> Evaluation:
    """Two covariances: classes and chips are Gaussian, and a pair is of one class or of two."""
    train, asked, searched = case.roles.train, case.roles.query, case.roles.gallery
    rows = unit(case.embeddings)
    rows = rows - rows[train].mean(axis=0)
    labels = case.domain.labels[train]
    same, total = _within(rows[train], labels), np.cov(rows[train], rowvar=False)
    d = len(total)
    same = 0.9 * same + 0.1 * np.trace(same) / d * np.eye(d)
    values, vectors = np.linalg.eigh(total - same)
    between = (vectors * values.clip(min=1e-6 * values.max())) @ vectors.T
    return _of_scores(case, plda_scores(rows[asked], rows[searched], same, between))


def plda_scores(queries: Array, gallery: Array, within: Array, between: Array) -> Array:
    """Return log p(x, y | one class) - log p(x, y | two classes) for rows with mean zero.

    Jointly, x and y are Gaussian with covariance B + W each, and B between them if they are of one class.
    """
    total = within + between
    joint = np.linalg.inv(np.block([[total, between], [between, total]]))
    d = len(total)
    alone = np.linalg.inv(total)
    own, cross = joint[:d, :d] - alone, joint[:d, d:]
    logdets = 2 * np.linalg.slogdet(total)[1] + np.linalg.slogdet(joint)[1]
    of_queries, of_gallery = (np.einsum("ij,jk,ik->i", rows, own, rows) for rows in (queries, gallery))
    return np.asarray((logdets - of_queries[:, None] - of_gallery) / 2 - queries @ cross @ gallery.T)


def _within(rows: Array, labels: NDArray[np.str_]) -> Array:
    names, codes = np.unique(labels, return_inverse=True)
    means = np.stack([rows[codes == code].mean(axis=0) for code in range(len(names))])
    centred = rows - means[codes]
    return np.asarray(centred.T @ centred / (len(rows) - len(names)))


def _of_scores(case: Case, scores: Array) -> Evaluation:
    asked, searched = case.roles.query, case.roles.gallery
    labels = case.domain.labels
    return evaluate(
        scores,
        None,
        labels[asked].tolist(),
        None,
        labels[searched].tolist(),
        case.domain.background[searched],
        groups=case.domain.groups[asked].tolist(),
    )


RULES: dict[str, Rule] = {
    COSINE: _cosine,
    RATIO: _ratio,
    CPLFPA_AT_TEST: _cplfpa,
    KINDS: _kinds,
    ADAPTED: _adapted,
    DIFFERENCES_ADAPTED: _differences_adapted,
    WHITENED: _whitened,
}
CLASSICAL: dict[str, Rule] = {"LDA": _lda, "KISSME": _kissme, "PLDA": _plda}
