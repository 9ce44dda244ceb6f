"""What an embedding says of its kind: kinds are Gaussian, of one shape, and a chip may show none of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp

from lookdown.metrics.covariance import inverse, refuse_unusable, shrink, shrinkage_amount
from lookdown.metrics.inputs import Array, Embeddings
from lookdown.metrics.pair_moments import PairMoments, Weighting

__all__ = ["MODEL_ARRAYS", "KindModel"]

_LEAST_EVIDENCE = -60.0  # of one chip against a kind: below it the kind is impossible either way


@dataclass(frozen=True)
class KindModel:
    """Gaussian kinds that share a covariance, and a wider Gaussian for chips that show none of them.

    The mean of a kind is known from n chips only, so a further chip of it scatters about that mean with (1 + 1/n) of
    the shared covariance: a kind of two chips is wider than one of a thousand.

    Chips that are known to be background, b of them, show none of the kinds. "None of these" is then the mean of the
    wider Gaussian and of one around each such chip, as wide as a kind known from one chip.
    """

    means: Array  # (c + b, d), of the kinds and then of the chips of background
    counts: Array  # (c + b,), the chips behind each mean
    within: Array  # (d, d), the covariance of a kind, shrunk
    total: Array  # (d, d), the covariance of all objects, shrunk
    priors: Array  # (c + 1,), the share of each kind, and of none

    @classmethod
    def of(
        cls,
        moments: PairMoments,
        *,
        shrinkage: float | Literal["auto"],
        weighting: Weighting,
        novelty: float,
        background: ArrayLike = (),
    ) -> Self:
        """Estimate kinds from the moments of labelled chips.

        novelty: the share of chips that show none of the kinds.
        background: the classes of the moments that are no kinds, but a chip of background each.
        """
        empty = np.isin(moments.classes, background)
        order, kinds = np.argsort(empty, kind="stable"), int((~empty).sum())
        counts = moments.counts[order].astype(np.float64)
        same, different = moments.covariances("classes")
        refuse_unusable(same, different, moments.mean)
        within = moments.scatters.sum(axis=0) / moments.free[0]
        within, total = (
            shrink(covariance, shrinkage_amount(shrinkage, covariance, samples))
            for covariance, samples in zip((within, different / 2), moments.free, strict=True)
        )
        shares = counts[:kinds] / counts[:kinds].sum() if weighting == "pairs" else np.full(kinds, 1 / kinds)
        return cls(moments.means[order], counts, within, total, np.r_[(1 - novelty) * shares, novelty])

    def log_posteriors(self, X: Embeddings, temperature: float) -> Array:
        """Return log P(kind | x), (rows, kinds + 1), none of them last; a higher temperature is less sure."""
        rows = X.astype(np.float64) - self._centre
        precision, wide = self._inverses[0][0], self._inverses[1][0]
        scales = self.counts / (self.counts + 1)
        values = np.empty((len(rows), len(scales) + 1))
        values[:, :-1] = (rows @ precision) @ self._offsets.T - self._halves
        values[:, :-1] -= (np.einsum("ij,ij->i", rows @ precision, rows) / 2)[:, None]
        values[:, :-1] = values[:, :-1] * scales + self._log_heights
        values[:, -1] = np.einsum("ij,ij->i", rows @ wide, rows) / -2
        values /= temperature
        kinds, parts = len(self.priors) - 1, len(scales) + 2 - len(self.priors)
        if parts > 1:
            values[:, kinds] = logsumexp(values[:, kinds:], axis=1) - np.log(parts)
        return self._normalized(values[:, : kinds + 1])

    def pooled(self, log_posteriors: Array, weights: Array, together: float = 0.0) -> Array:
        """Return log P(kind | several chips of one kind), (1, kinds + 1): P(c) times the product of P(c | x) / P(c).

        together: the log of how much likelier it is that chips of none of the kinds occur together, being of one new
            kind, than apart. Chips of a known kind are independent.
        """
        with np.errstate(invalid="ignore"):  # "none" that is impossible says nothing
            each = np.nan_to_num(log_posteriors - self._log_priors, nan=0.0).clip(min=_LEAST_EVIDENCE)
        evidence = np.asarray(weights @ each)
        evidence[-1] += together
        return self._normalized(evidence[None])

    def _normalized(self, evidence: Array) -> Array:
        return np.asarray(log_softmax(evidence + self._log_priors, axis=1))

    @cached_property
    def _log_priors(self) -> Array:
        """Of each kind and of none, which a novelty of 0 makes impossible."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.priors))

    @cached_property
    def _inverses(self) -> tuple[tuple[Array, float], tuple[Array, float]]:
        return inverse(self.within, "same"), inverse(self.total, "different")

    @cached_property
    def _centre(self) -> Array:
        """The mean of all means, from which all is measured: far from the origin, squares would lose their digits."""
        return np.asarray(self.means.mean(axis=0))

    @cached_property
    def _offsets(self) -> Array:
        return self.means - self._centre

    @cached_property
    def _halves(self) -> Array:
        """Half the squared length of each offset, (c,)."""
        return np.asarray(np.einsum("ij,jk,ik->i", self._offsets, self._inverses[0][0], self._offsets) / 2)

    @cached_property
    def _log_heights(self) -> Array:
        """The log-density of each kind at its mean over that of all objects at theirs, (c,)."""
        (_, near), (_, far) = self._inverses
        scales = self.counts / (self.counts + 1)
        return np.asarray((far - near + len(self.within) * np.log(scales)) / 2)


MODEL_ARRAYS = tuple(field.name for field in fields(KindModel))
