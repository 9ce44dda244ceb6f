"""The ratio of kinds: fitted against classifiers, scored against faiss, and agreeing with both."""

from __future__ import annotations

import warnings

import faiss
import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from lookdown.metrics import KindLikelihoodRatio
from sidebyside import QUICK, Row, compare, report

Array = NDArray[np.float32]
Labels = NDArray[np.int64]

KINDS, DIMENSIONS = 50, 64
TRAINED = 5_000 if QUICK else 100_000
HELD_OUT = 2_000 if QUICK else 20_000
GALLERY = 5_000 if QUICK else 200_000
SHRINKAGE = 0.1  # towards the sphere of the same trace, which is what scikit-learn's number means too
BEST = 50
# Targets: ours over the peer, in seconds or in per cent of the chips.
LINEAR = 1.5  # the same moments, and on our side the ratio of differences as well
LOGISTIC = 0.2  # it goes through the chips tens of times, and a closed form once
ACCURACY = 0.999  # the same model, but each chooses its shrinkage
ACCURACY_LOGISTIC = 0.99  # another model, which fits this world as well
ALIKE = 0.995  # at one shrinkage: what is left is rounding and how well a mean is known
SCORES = 2.0  # the same posteriors; then float64 and 20 million logarithms, where the peer keeps the best 50


class World:
    """Kinds that overlap: Gaussians of one shape, elongated, about means of their own."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.centres = 0.3 * rng.normal(size=(KINDS, DIMENSIONS))
        self.shape = rng.normal(size=(DIMENSIONS, DIMENSIONS)) / DIMENSIONS**0.5 + 0.5 * np.eye(DIMENSIONS)

    def chips(self, rows: int) -> tuple[Array, Labels]:
        """Draw embeddings and their kinds."""
        y = self.rng.integers(KINDS, size=rows)
        X = self.centres[y] + self.rng.normal(size=(rows, DIMENSIONS)) @ self.shape
        return X.astype(np.float32), y


def known_kinds() -> KindLikelihoodRatio:
    """The model that linear discriminant analysis has too: every chip is of a known kind, nothing is tempered."""
    return KindLikelihoodRatio(novelty=0, temperature=1.0, shrinkage=SHRINKAGE, normalize=False)


def discriminant(shrinkage: float | str = SHRINKAGE) -> LinearDiscriminantAnalysis:
    """The peer with the same priors and, unless it is to choose, the same shrinkage."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=np.full(KINDS, 1 / KINDS))


def regression(X: Array, y: Labels) -> LogisticRegression:
    """Fit a multinomial logistic regression as scikit-learn sets it up, stopped where it stops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression().fit(X, y)


def fitting(X: Array, y: Labels) -> list[Row]:
    """From embeddings to a metric that scores."""
    what = f"fit, {len(X):,} x {DIMENSIONS}, {KINDS} kinds"

    def ours() -> object:
        return KindLikelihoodRatio().fit(X, y)

    def linear() -> object:
        return discriminant().fit(X, y)

    def logistic() -> object:
        return regression(X, y)

    return [
        compare(what, ours, "scikit-learn LinearDiscriminantAnalysis, lsqr", linear, limit=LINEAR, turns=5),
        compare(what, ours, "scikit-learn LogisticRegression", logistic, limit=LOGISTIC, turns=3),
    ]


def agreement(X: Array, y: Labels, fresh: Array, labels: Labels) -> list[Row]:
    """The kinds of held-out chips: right as often as by each peer as it comes, and with equal settings the same."""
    what = f"kinds of {len(fresh):,} held-out chips"
    mine = KindLikelihoodRatio(normalize=False).fit(X, y).predict(fresh)

    def right(answer: Labels) -> float:
        return 100 * float((answer == labels).mean())

    def accuracy(peer: str, answer: Labels, limit: float) -> Row:
        return Row.of(f"{what}: right", peer, right(mine), right(answer), limit=limit, unit="%", better="higher")

    ours, theirs = known_kinds().fit(X, y), discriminant().fit(X, y)
    gap = np.abs(ours.predict_proba(fresh) - theirs.predict_proba(fresh)).max()
    print(f"P(kind | x) is at most {gap:.1g} from that of linear discriminant analysis\n")
    alike = 100 * float((ours.predict(fresh) == theirs.predict(fresh)).mean())
    return [
        accuracy("LinearDiscriminantAnalysis", discriminant("auto").fit(X, y).predict(fresh), ACCURACY),
        accuracy("LogisticRegression", regression(X, y).predict(fresh), ACCURACY_LOGISTIC),
        Row.of(f"{what}: those of LDA", "all of them", alike, 100, limit=ALIKE, unit="%", better="higher"),
    ]


def scoring(X: Array, y: Labels, queries: Array, gallery: Array) -> list[Row]:
    """A hundred queries: ours to every score, the peer to the best few and without the logarithm.

    An index that is made before has nothing left to do but one product. What it saves is the price of storing
    embeddings alone, so that another metric can be put over them: it is reported and has no target.
    """
    metric = known_kinds().fit(X, y)

    def vectors(rows: Array) -> Array:
        return np.asarray(metric.predict_proba(rows) * KINDS**0.5, dtype=np.float32)

    def index() -> faiss.IndexFlatIP:
        flat = faiss.IndexFlatIP(KINDS)
        flat.add(vectors(gallery))
        return flat

    ready, asked = index(), vectors(queries)
    best = np.sort(np.exp(metric.score(queries, gallery)), axis=1)[:, : -BEST - 1 : -1]
    np.testing.assert_allclose(ready.search(asked, BEST)[0], best, rtol=1e-3)
    what = f"scores of {len(queries)} x {len(gallery):,}, {KINDS} kinds, from embeddings"

    def ours() -> object:
        return metric.score(queries, gallery)

    def from_embeddings() -> object:
        return index().search(vectors(queries), BEST)

    def index_made_before() -> object:
        return ready.search(asked, BEST)

    faiss_best = f"faiss IndexFlatIP, best {BEST}"
    return [
        compare(what, ours, f"{faiss_best}, from embeddings", from_embeddings, limit=SCORES, turns=7),
        compare(what, ours, f"{faiss_best}, index made before", index_made_before, limit=None, turns=7),
    ]


def main() -> None:
    """Measure everything with one BLAS and one OpenMP thread."""
    faiss.omp_set_num_threads(1)
    world = World(np.random.default_rng(0))
    X, y = world.chips(TRAINED)
    with threadpool_limits(1):
        rows = [*fitting(X, y), *agreement(X, y, *world.chips(HELD_OUT))]
        rows += scoring(X, y, world.chips(100)[0], world.chips(GALLERY)[0])
    report("The ratio of kinds", rows)


if __name__ == "__main__":
    main()
