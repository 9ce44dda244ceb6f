"""Figure 1 of the paper: how far the scores of same and of different pairs lie apart, by cosine and by the ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, mannwhitneyu

from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.tasks import SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Cosine, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PairScores", "make", "pair_scores"]

_SAME, _DIFFERENT = "#0072B2", "#D55E00"  # of Okabe and Ito, whose colours are told apart by every kind of eye
_MOST_BINS = 80
# At most this share of the different pairs lies left of the chart: the tail of a log-likelihood ratio is long.
_LEFT_OUT = 0.005

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of the pairs of a query and a chip of the gallery."""

    name: str
    axis: str
    same: Array
    different: Array

    @property
    def area(self) -> float:
        """Return the probability that a same pair scores higher than a different one, ties counting half."""
        wins = mannwhitneyu(self.same, self.different, method="asymptotic").statistic
        return float(wins / (len(self.same) * len(self.different)))

    @property
    def separation(self) -> float:
        """Return d': the distance of the means in pooled standard deviations."""
        pooled = (self.same.var() + self.different.var()) / 2
        return float((self.same.mean() - self.different.mean()) / np.sqrt(pooled))

    @property
    def best_threshold(self) -> float:
        """Return the score at which misses and false alarms, as shares of their kinds, have the smallest sum."""
        return float(ks_2samp(self.different, self.same, alternative="greater", method="asymp").statistic_location)

    @property
    def overlap(self) -> float:
        """Return that smallest sum: 0 where one threshold divides the kinds, 1 where none does any good."""
        return 1 - float(ks_2samp(self.different, self.same, alternative="greater", method="asymp").statistic)


def make(experiment: Experiment) -> Page:
    """Draw the distributions of the first seed."""
    one = replace(experiment, seeds=1)
    unified, glrt = one.case(SHIPS, "unified", 0), one.case(SHIPS, "glrt", 0)
    cosine = Cosine().fit(unified.embeddings)
    charts = (
        pair_scores(unified, cosine, "unified loss, cosine", "cosine similarity"),
        pair_scores(glrt, glrt.source, "GLRT loss, likelihood ratio", "log-likelihood ratio"),
    )
    caption = (
        f"{one.caption(SHIPS)} Every query is compared with every chip of the gallery: {len(charts[0].same):,} same "
        f"and {len(charts[0].different):,} different pairs, background counting as different."
    )
    picture = PageFigure(
        "figure_1",
        _draw(charts),
        "Scores of same and of different pairs. Each distribution has area 1, though same pairs are rare; at the "
        "dotted line the two error rates have the smallest sum. The ratio is that of the training chips, clipped to a "
        f"distance. Left of each chart lie at most {100 * _LEFT_OUT:g} % of the different pairs and no same ones.",
    )
    return Page("Figure 1: same and different pairs under two metrics", caption, (picture, _table(charts), _READING))


_READING = (
    "Overlap is the smallest sum of missed same pairs and accepted different pairs, each as a share of its kind, over "
    "all thresholds. AUC is the probability that a same pair scores above a different one. d' is the distance of the "
    "means in pooled standard deviations; it takes the shapes for Gaussians, which the ratio's long tail is not, so "
    "overlap and AUC, which only ask for the order, are the fairer figures."
)


def pair_scores(case: Case, metric: Metric, name: str, axis: str) -> PairScores:
    """Return the scores of all pairs of a query and a chip of the gallery; a query is never background."""
    asked, searched = case.roles.query, case.roles.gallery
    scores = np.asarray(metric.score(case.embeddings[asked], case.embeddings[searched]), np.float64)
    same = case.domain.labels[asked][:, None] == case.domain.labels[searched]
    return PairScores(name, axis, scores[same], scores[~same])


def _table(charts: Sequence[PairScores]) -> Table:
    rows = [
        [chart.name, f"{100 * chart.overlap:.1f} %", f"{chart.area:.3f}", f"{chart.separation:.2f}"] for chart in charts
    ]
    return Table(["network and metric", "overlap", "AUC", "d'"], rows)


def _draw(charts: Sequence[PairScores]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for position, (letter, chart) in enumerate(zip("ab", charts, strict=True), start=1):
        axes = figure.add_subplot(1, 2, position)
        _histograms(axes, chart)
        axes.set_title(f"({letter}) {chart.name}")
    return figure


def _histograms(axes: Axes, chart: PairScores) -> None:
    low = min(float(np.quantile(chart.different, _LEFT_OUT)), float(chart.same.min()))
    bins = min(_MOST_BINS, max(10, round(2 * np.sqrt(len(chart.same)))))  # few pairs in narrow bins are noise
    edges = np.linspace(low, max(chart.same.max(), chart.different.max()), bins + 1)
    for scores, colour, style, name in (
        (chart.different, _DIFFERENT, "--", "different"),
        (chart.same, _SAME, "-", "same"),
    ):
        shares = np.histogram(scores, edges)[0] / (len(scores) * np.diff(edges))
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(
            shares, edges, color=colour, linestyle=style, linewidth=1.6, label=f"{name} ({len(scores):,} pairs)"
        )
    axes.axvline(chart.best_threshold, color="0.25", linestyle=":", label="best threshold")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1.35 * axes.dataLim.ymax)  # the legend is above the curves
    axes.set_xlabel(f"{chart.axis} (more alike to the right)")
    axes.set_ylabel("density")
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
