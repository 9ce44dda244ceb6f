"""Mirrored mixtures fitted to differences by expectation-maximisation (Eq. 16 to 22 of the paper, made symmetric)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from lookdown.errors import CollapsedComponentWarning
from lookdown.metrics.inputs import Array
from lookdown.metrics.mirrored_mixture import MirroredMixture

__all__ = ["Fit", "expectation_maximisation", "start"]

_BLOCK_DIFFERENCES = 1024  # at a time: both steps are done on a block while it is in the cache
_LLOYD_ROUNDS = 10  # of k-means after the k-means++ draw


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted mixture, the objective before each update, and whether it converged."""

    mixture: MirroredMixture
    objectives: list[float]
    converged: bool


def expectation_maximisation(
    x: Array, mixture: MirroredMixture, *, ridge: float, tol: float, max_iter: int, name: str = "these"
) -> Fit:
    """Improve a mixture on differences until a round gains less than `tol` a difference.

    The objective is the log-likelihood less `ridge` times a penalty that keeps covariances from vanishing; the update
    maximises it exactly, so it never falls. A component that has lost its data is dropped with a warning, and the
    list of objectives starts again.
    """
    prior = ridge * len(x) / len(mixture.weights) * float(np.square(x).mean())
    objectives: list[float] = []
    for _ in range(max_iter):
        sums = _Sums.over(x, mixture)
        objective = sums.log_likelihood - prior / 2 * float(np.square(mixture.factors).sum())
        if not np.isfinite(objective):
            raise np.linalg.LinAlgError("the objective is not finite")
        if objectives:
            gain = objective - objectives[-1]
            assert gain >= -_rounding(objective, len(x), mixture), f"the objective fell by {-gain}"
            if gain < tol * len(x):
                return Fit(mixture, [*objectives, objective], converged=True)
        objectives.append(objective)
        alive = sums.alive(prior)
        alive[sums.share.argmax()] = True
        if not alive.all():
            warnings.warn(
                f"{(~alive).sum()} of {len(alive)} components for {name} differences kept too few of them for a "
                "covariance, or copies of one, and were dropped; use fewer components or more pairs",
                CollapsedComponentWarning,
                stacklevel=2,
            )
            objectives.clear()
        mixture = sums.update(mixture, prior, alive)
    return Fit(mixture, objectives, converged=False)


def start(x: Array, components: int, rng: np.random.Generator, *, diagonal: bool) -> MirroredMixture:
    """Return a first guess: one component at zero, the others by k-means++ and a few rounds of k-means.

    A difference belongs to the nearest centre or mirrored centre. All components start with one covariance, that of
    all differences about their centres.
    """
    centres = np.zeros((1, x.shape[1]))
    for _ in range(components - 1):
        odds = _nearest(x, centres)[2]
        if not odds.any():  # every difference is a centre already
            break
        centres = np.r_[centres, x[rng.choice(len(x), p=odds / odds.sum())][None]]
    for _ in range(_LLOYD_ROUNDS):
        owner, side, _ = _nearest(x, centres)
        for k in range(1, len(centres)):
            rows = owner == k
            if rows.any():
                centres[k] = side[rows] @ x[rows] / rows.sum()
    owner, side, _ = _nearest(x, centres)
    weights = np.bincount(owner, minlength=len(centres)) + 1.0
    rest = x - side[:, None] * centres[owner]
    spread = np.square(rest).mean(axis=0)
    floor = 1e-6 * float(np.square(x).mean())
    shared = spread + floor if diagonal else rest.T @ rest / len(x) + floor * np.eye(len(spread))
    return MirroredMixture(weights / weights.sum(), centres, np.stack([shared] * len(centres)))


def _rounding(objective: float, samples: int, mixture: MirroredMixture) -> float:
    """Return by how much the objective may fall by rounding alone.

    With diagonal covariances the density is a difference of numbers as large as |b|^2.
    """
    largest = float(np.square(mixture.images).sum(axis=1).max()) if mixture.is_diagonal else 0.0
    return 1e-9 * (samples + abs(objective)) + 1e-14 * samples * largest


def _nearest(x: Array, centres: Array) -> tuple[NDArray[np.intp], Array, Array]:
    """Return, for each difference, its centre, on which side of zero (1 or -1), and the squared distance."""
    products = x @ centres.T
    squares = np.square(x).sum(axis=1)[:, None] + np.square(centres).sum(axis=1) - 2 * np.abs(products)
    owner = squares.argmin(axis=1)
    rows = np.arange(len(x))
    return owner, np.where(products[rows, owner] < 0, -1.0, 1.0), squares[rows, owner].clip(min=0)


class _Sums:
    """The sums over differences that an update needs; r is a component's share in x, t = tanh(u'b) its leaning."""

    def __init__(self, mixture: MirroredMixture) -> None:
        self.log_likelihood = 0.0
        self.share = np.zeros_like(mixture.weights)  # sum r
        self.leaning = np.zeros_like(mixture.weights)  # sum r t^2
        self.first = np.zeros_like(mixture.means)  # sum r t x
        self.second = np.zeros_like(mixture.covariances)  # sum r (x - t mean)(x - t mean)'

    @classmethod
    def over(cls, x: Array, mixture: MirroredMixture) -> _Sums:
        """Do the expectation step on all differences."""
        sums = cls(mixture)
        for begin in range(0, len(x), _BLOCK_DIFFERENCES):
            sums._add(x[begin : begin + _BLOCK_DIFFERENCES], mixture)
        return sums

    def _add(self, x: Array, mixture: MirroredMixture) -> None:
        logs, pulls = mixture.log_components(x)
        total = logsumexp(logs, axis=1, keepdims=True)
        r, t = np.exp(logs - total), np.tanh(pulls)
        self.log_likelihood += float(total.sum())
        self.share += r.sum(axis=0)
        first, leaning = (r * t).T @ x, (r * t * t).sum(axis=0)
        self.first += first
        self.leaning += leaning
        if mixture.is_diagonal:
            means = mixture.means
            self.second += r.T @ np.square(x) - 2 * means * first + leaning[:, None] * np.square(means)
            return
        roots = np.sqrt(r)
        for k, mean in enumerate(mixture.means):
            rest = (x - np.multiply.outer(t[:, k], mean)) if mixture.mirrored[k] else x
            rest = rest * roots[:, k, None]
            self.second[k] += rest.T @ rest

    def alive(self, prior: float) -> NDArray[np.bool_]:
        """Return which components still have enough differences for a covariance, and more than copies of one.

        Copies have a spread far below what the ridge adds; a tight cluster has more.
        """
        d = self.first.shape[-1]
        diagonal = self.second.ndim == 2
        spread = self.second.sum(axis=1) if diagonal else np.trace(self.second, axis1=1, axis2=2)
        return np.asarray((self.share > (2 if diagonal else d + 1)) & (spread > 1e-3 * prior * d))

    def update(self, mixture: MirroredMixture, prior: float, alive: NDArray[np.bool_]) -> MirroredMixture:
        """Do the maximisation step.

        The scatter is about the old mean. Moving it to the new one subtracts share * step step', and adds back the
        part of the mean that undecided differences cancel. No large numbers are subtracted.
        """
        share, old = self.share[alive, None], mixture.means[alive]
        means = self.first[alive] / share * mixture.mirrored[alive, None]
        step = means - old
        undecided = share - self.leaning[alive, None]
        if mixture.is_diagonal:
            covariances = (self.second[alive] - share * step**2 + undecided * old**2 + prior) / share
        else:
            shift = undecided[:, :, None] * _outer(old) - share[:, :, None] * _outer(step)
            covariances = (self.second[alive] + shift + prior * np.eye(means.shape[1])) / share[:, :, None]
        return MirroredMixture(share[:, 0] / share.sum(), means, covariances)


def _outer(rows: Array) -> Array:
    return np.asarray(rows[:, :, None] * rows[:, None, :])
