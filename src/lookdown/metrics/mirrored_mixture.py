"""A Gaussian mixture that is symmetric about zero, p(x) = p(-x), as the law of a difference must be."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from lookdown.metrics.inputs import Array, Embeddings
from lookdown.metrics.pairwise import half_squared_distances

__all__ = ["MirroredMixture"]

_BLOCK_DIFFERENCES = 4096  # whose density is computed at a time


class MirroredMixture:
    """sum_k weights[k] * (N(x; mean_k, cov_k) + N(x; -mean_k, cov_k)) / 2.

    A mirrored pair counts as one component; one with mean zero is its own mirror. With L the inverse Cholesky factor
    of a covariance, u = L'x and b = L'mean, the two halves together are |L| N(u; s b, I) (1 + exp(-2 |u'b|)) / 2, s
    being the sign of u'b: both sides for the price of one, and the same bits for x and -x.

    `covariances` are (k, d, d), or (k, d) where they are diagonal.
    """

    def __init__(self, weights: Array, means: Array, covariances: Array) -> None:
        self.weights, self.means, self.covariances = weights, means, covariances
        if self.is_diagonal:
            if not (covariances > 0).all():
                raise np.linalg.LinAlgError("a variance is not positive")
            self.factors: Array = 1 / np.sqrt(covariances)
            logdets = np.log(self.factors).sum(axis=1)
        else:
            lower = np.linalg.cholesky(covariances)
            self.factors = np.linalg.inv(lower).transpose(0, 2, 1)
            logdets = -np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        images = np.stack([self.whiten(mean, k) for k, mean in enumerate(means)])
        # u'b = x'(L b): one vector a component gives the side of zero and how clear it is.
        self.pulls: Array = np.stack([self._dewhiten(image, k) for k, image in enumerate(images)])
        self.images: Array = images  # b
        half_log_tau = self.dim / 2 * math.log(2 * math.pi)
        self.mirrored: NDArray[np.bool_] = np.asarray(means.any(axis=1))  # the others are centred at zero
        self.constants: Array = np.log(weights) + logdets - half_log_tau

    @property
    def is_diagonal(self) -> bool:
        """Whether the covariances are kept as their diagonals."""
        return self.covariances.ndim == 2

    @property
    def dim(self) -> int:
        """Dimensions of a difference."""
        return int(self.means.shape[1])

    @property
    def parameters(self) -> int:
        """Free parameters: weights that add up to one, means of the mirrored components, covariances."""
        each = self.dim if self.is_diagonal else self.dim * (self.dim + 1) // 2
        return len(self.weights) - 1 + int(self.mirrored.sum()) * self.dim + len(self.weights) * each

    def whiten(self, x: Embeddings, k: int) -> Array:
        """Map differences to where component k, centred, is a standard normal."""
        return np.asarray(x * self.factors[k] if self.is_diagonal else x @ self.factors[k])

    def log_components(self, x: Array) -> tuple[Array, Array]:
        """Return log(weight_k p_k(x)) and u'b, (n, k) each."""
        pulls = x @ self.pulls.T
        return self.constants + _other_half(pulls) - self.squares(x, pulls) / 2, pulls

    def squares(self, x: Array, pulls: Array) -> Array:
        """Return the squared distance to the nearer half of each component, |u - s b|^2 with s = sign(u'b): (n, k)."""
        if self.is_diagonal:  # by products, which are fast; a mean far beyond the spread costs digits
            squares = np.square(x) @ np.square(self.factors).T
            return np.asarray(squares - 2 * np.abs(pulls) + np.square(self.images).sum(axis=1))
        squares = np.empty((len(x), len(self.weights)))
        for k, factor in enumerate(self.factors):
            u = x @ factor
            if self.mirrored[k]:
                u -= np.multiply.outer(np.copysign(1.0, pulls[:, k]), self.images[k])
            squares[:, k] = np.einsum("ij,ij->i", u, u)
        return squares

    def log_density(self, x: Array) -> Array:
        """Return log p of each difference."""
        blocks = [x[i : i + _BLOCK_DIFFERENCES] for i in range(0, len(x), _BLOCK_DIFFERENCES)]
        return np.concatenate([logsumexp(self.log_components(block)[0], axis=1) for block in blocks] or [np.empty(0)])

    def log_density_of_pairs(self, a: Embeddings, b: Embeddings) -> Array:
        """Return log p(a_i - b_j) for all pairs of rows, a component at a time, without forming the differences."""
        total = np.full((len(a), len(b)), -np.inf)
        for k in range(len(self.weights)):
            logs = half_squared_distances(self.whiten(a, k), self.whiten(b, k))
            np.subtract(self.constants[k], logs, out=logs)
            if self.mirrored[k]:
                # |u - s b|^2 = |u|^2 + |b|^2 - 2 |u'b|, s being the side of zero on which u lies
                pulls = (a @ self.pulls[k])[:, None] - b @ self.pulls[k]
                logs += np.abs(pulls) + _other_half(pulls) - self.images[k] @ self.images[k] / 2
            np.logaddexp(total, logs, out=total)
        return total

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw differences."""
        drawn = rng.choice(len(self.weights), size=n, p=self.weights)
        noise = rng.normal(size=(n, self.dim))
        x = rng.choice([-1.0, 1.0], size=(n, 1)) * self.means[drawn]
        for k in range(len(self.weights)):
            rows = drawn == k
            root = np.sqrt(self.covariances[k]) if self.is_diagonal else np.linalg.cholesky(self.covariances[k]).T
            x[rows] += noise[rows] * root if self.is_diagonal else noise[rows] @ root
        return np.asarray(x)

    def _dewhiten(self, u: Array, k: int) -> Array:
        return np.asarray(u * self.factors[k] if self.is_diagonal else self.factors[k] @ u)


def _other_half(pulls: Array) -> Array:
    """Return log((1 + exp(-2 |u'b|)) / 2), what the farther half adds to the nearer; 0 for a component at zero."""
    return np.asarray(np.log1p(np.exp(-2 * np.abs(pulls))) - math.log(2))
