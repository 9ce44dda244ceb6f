"""Figure 4 of the paper: what more Gaussian components are worth, in its four settings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from lookdown.adaptation import adapt
from lookdown.errors import CollapsedComponentWarning
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page, PageFigure, Table, spread
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import MixtureLikelihoodRatio
from lookdown.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VARIANTS", "MixturePoint", "MixtureVariant", "make", "mixture", "point"]

_SEEDS = 2
_PAIRS, _ROUNDS = 10_000, 60  # of expectation-maximisation: 64 dimensions and ten components take seconds, not minutes


@dataclass(frozen=True, slots=True)
class MixtureVariant:
    """One of the paper's settings; different pairs always have N components."""

    name: str
    many_same: bool  # N components for same pairs too, rather than one
    covariance: Literal["full", "diagonal"]
    adapted: bool
    colour: str
    marker: str

    @property
    def meaning(self) -> str:
        """What the paper's caption says of it."""
        parts = ["K1 = N" if self.many_same else "K1 = 1"]
        if self.covariance == "diagonal":
            parts.append("diagonal")
        parts.append("CPLFPA" if self.adapted else "no CPLFPA")
        return ", ".join(parts)


VARIANTS = (
    MixtureVariant("Experiment 1", many_same=False, covariance="full", adapted=True, colour="#0072B2", marker="o"),
    MixtureVariant("Experiment 2", many_same=True, covariance="full", adapted=True, colour="#D55E00", marker="s"),
    MixtureVariant("Experiment 3", many_same=False, covariance="full", adapted=False, colour="#009E73", marker="^"),
    MixtureVariant("Experiment 4", many_same=True, covariance="diagonal", adapted=True, colour="#CC79A7", marker="D"),
)


@dataclass(frozen=True, slots=True)
class MixturePoint:
    """One fit: its mAP in percent, and what became of its components."""

    mean_average_precision: float
    collapsed: bool
    converged: bool


def make(experiment: Experiment) -> Page:
    """Fit every setting with every number of components, for the first seeds."""
    few = replace(experiment, seeds=min(_SEEDS, len(experiment.each_seed)))
    counts = range(1, 4 if experiment.scale == "smoke" else 11)
    points: dict[tuple[str, int], list[MixturePoint]] = {}
    for seed in few.each_seed:
        recipe = few.recipe(SHIPS, "glrt", seed)
        case = few.case(SHIPS, "glrt", seed)
        for count in counts:
            few.note(f"figure 4, seed {seed}: {count} components")
            for variant in VARIANTS:
                points.setdefault((variant.name, count), []).append(point(case, recipe, variant, count))
    curves = {
        variant.name: [[one.mean_average_precision for one in points[variant.name, count]] for count in counts]
        for variant in VARIANTS
    }
    caption = (
        f"{few.caption(SHIPS)} Embeddings of the network trained by the GLRT loss are scored by mixtures of N "
        f"components for different pairs, fitted to {_PAIRS:,} pairs of each kind in at most {_ROUNDS} rounds. CPLFPA "
        "has one cluster for each class of the target and one for the background. The paper draws its curves without "
        "printing their values, so only ours are given."
    )
    picture = PageFigure(
        "figure_4", _draw(counts, curves), "mAP by the number of components; bars reach from seed to seed."
    )
    parts = (picture, _table(counts, curves), _troubles([one for group in points.values() for one in group]))
    return Page("Figure 4: the number of Gaussian components", caption, parts)


def mixture(
    recipe: Recipe, same: int, different: int, covariance: Literal["full", "diagonal"] = "full"
) -> MixtureLikelihoodRatio:
    """Return a mixture, not fitted yet, that with one component each is the recipe's Gaussian metric, unclipped."""
    return MixtureLikelihoodRatio(
        same,
        different,
        covariance,
        _PAIRS,
        recipe.metric.weighting,
        recipe.seed,
        shrinkage=recipe.metric.shrinkage,
        max_iter=_ROUNDS,
    )


def point(case: Case, recipe: Recipe, variant: MixtureVariant, count: int) -> MixturePoint:
    """Fit one mixture and score the test by it; components that die are noted and the rest is used."""
    train, labels = case.embeddings[case.roles.train], case.domain.labels[case.roles.train]
    same = count if variant.many_same else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)  # counted below
        if variant.adapted:
            # Of a source mixture `adapt` takes the parameters alone, so one that is quick to fit carries them.
            source = mixture(recipe, 1, 1, variant.covariance).fit(train, labels).set_params(same=same, different=count)
            clusters = base_clusters(case)
            metric = adapt(source, case.target, clusters=clusters, method="cplfpa", seed=recipe.seed).metric
        else:
            metric = mixture(recipe, same, count, variant.covariance).fit(train, labels)
    assert isinstance(metric, MixtureLikelihoodRatio)
    collapsed = len(metric.same_.weights) < same or len(metric.different_.weights) < count
    return MixturePoint(case.mean_average_precision(metric), collapsed, all(metric.converged_.values()))


def _troubles(points: Sequence[MixturePoint]) -> str:
    collapsed = sum(one.collapsed for one in points)
    stopped = sum(not one.converged for one in points)
    return (
        f"Of {len(points)} fits, {collapsed} lost components that had too few pairs left and went on with the others, "
        f"and {stopped} had not converged when their rounds were over; all are in the figure."
    )


def _table(counts: Sequence[int], curves: dict[str, list[list[float]]]) -> Table:
    header = ["N", *(f"{variant.name}: {variant.meaning}" for variant in VARIANTS)]
    rows = [[str(count), *(spread(curves[variant.name][i]) for variant in VARIANTS)] for i, count in enumerate(counts)]
    return Table(header, rows, "mAP in percent")


def _draw(counts: Sequence[int], curves: dict[str, list[list[float]]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for index, variant in enumerate(VARIANTS):
        values = np.array(curves[variant.name])
        mean = values.mean(axis=1)
        reach = np.abs(np.stack([values.min(axis=1), values.max(axis=1)]) - mean)
        aside = np.array(counts) + 0.06 * (index - 1.5)  # so that bars do not hide one another
        label = f"{variant.name}: {variant.meaning}"
        axes.errorbar(
            aside, mean, reach, color=variant.colour, marker=variant.marker, capsize=2, linewidth=1.4, label=label
        )
    axes.set_xticks(list(counts))
    axes.set_xlabel("number of Gaussian components N (K0 = N)")
    axes.set_ylabel("mAP (%)")
    axes.grid(axis="y", color="0.9")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
