"""Figure 5 of the paper: differences as they are, and as the fitted Gaussian and the fitted mixture simulate them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import CollapsedComponentWarning, InputError
from lookdown.lab.paper.domains import Rows
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.figure_4 import mixture
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.tasks import SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import MixtureLikelihoodRatio
from lookdown.metrics.inputs import unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["KINDS", "PARTS", "Differences", "make", "recognised", "true_differences"]

Array = NDArray[np.float64]
Kind = Literal["same", "different"]
Part = Literal["train", "test"]
KINDS: tuple[Kind, ...] = ("same", "different")
PARTS: tuple[Part, ...] = ("train", "test")

# Dark for real, light for simulated, blue for same and red for different; of Okabe and Ito but for the last.
_COLOURS = {
    ("real", "same"): "#0072B2",
    ("real", "different"): "#D55E00",
    ("simulated", "same"): "#56B4E9",
    ("simulated", "different"): "#F0A6A0",
}


@dataclass(frozen=True, slots=True)
class Differences:
    """Real differences of one kind, from two halves of the chips that share no chip."""

    first: Array
    second: Array


def make(experiment: Experiment) -> Page:
    """Draw the four panels for the first seed: Gaussian and mixture, training and test."""
    one = replace(experiment, seeds=1)
    drawn, counted, most = (40, 100, 3) if experiment.scale == "smoke" else (300, 1_000, 10)
    recipe, case = one.recipe(SHIPS, "glrt", 0), one.case(SHIPS, "glrt", 0)
    train, labels = case.embeddings[case.roles.train], case.domain.labels[case.roles.train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)  # the table says how many components are left
        fitted = mixture(recipe, 1, most).fit(train, labels)
    models = {"Gaussian": mixture(recipe, 1, 1).fit(train, labels), _name(fitted): fitted}
    real = {(part, kind): true_differences(case, part, kind, counted) for part in PARTS for kind in KINDS}
    caption = (
        f"{one.caption(SHIPS)} Differences of unit embeddings of the network trained by the GLRT loss. Both models are "
        "fitted on the training chips; test pairs are of a query and a chip of the gallery, background counting as "
        "different."
    )
    picture = PageFigure(
        "figure_5",
        _draw(models, real, drawn),
        f"t-SNE of {drawn} differences of each of four kinds, each panel mapped by itself: real ones are dots, those "
        "drawn from the model are crosses. Distances between far groups of a t-SNE map mean little.",
    )
    return Page("Figure 5: real and simulated differences", caption, (picture, _table(models, real), _READING))


_READING = (
    "AUC: how well a forest of 100 trees tells real from simulated differences; 0.5 means it cannot, 1 that it always "
    "can. It is fitted on pairs of one half of the chips and asked about pairs of the other half. Log-density: the "
    "mean over the real differences, in nats; the higher of two models fits better, and training and test cannot be "
    "compared. Models are drawn from as they are used, with shrunk covariances, and a law over all space cannot keep "
    "to differences of unit vectors, so an AUC of 0.5 is not to be expected."
)


def true_differences(case: Case, part: Part, kind: Kind, count: int) -> Differences:
    """Draw real differences from two halves of the chips, in either order: models are symmetric about zero."""
    rng = np.random.default_rng([PARTS.index(part), KINDS.index(kind)])
    asked = rng.permutation(case.roles.train if part == "train" else case.roles.query)
    searched = asked if part == "train" else rng.permutation(case.roles.gallery)
    halves = zip(np.array_split(asked, 2), np.array_split(searched, 2), strict=True)
    return Differences(*(_drawn(case, a, b, kind, count, rng) for a, b in halves))


def recognised(model: MixtureLikelihoodRatio, real: Differences, kind: Kind) -> float:
    """Return the AUC of a forest that tells real from simulated: fitted on half of the chips, tried on the others."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    forest.fit(*_against(real.first, model.sample(len(real.first), kind, seed=1)))
    mixed, truth = _against(real.second, model.sample(len(real.second), kind, seed=2))
    return float(roc_auc_score(truth, forest.predict_proba(mixed)[:, 1]))


def _drawn(case: Case, asked: Rows, searched: Rows, kind: Kind, count: int, rng: np.random.Generator) -> Array:
    labels = case.domain.labels
    wanted = (labels[asked][:, None] == labels[searched]) == (kind == "same")
    if np.array_equal(asked, searched):
        wanted &= np.tri(len(asked), k=-1, dtype=np.bool_)  # each pair of training chips once
    pairs = np.flatnonzero(wanted)
    if not len(pairs):
        raise InputError(f"half of the chips of {case.domain.name} have no {kind} pairs to be drawn; give more chips")
    chosen = rng.choice(pairs, min(count, len(pairs)), replace=False)
    first, second = np.unravel_index(chosen, wanted.shape)
    embeddings = np.asarray(unit(case.embeddings), np.float64)
    differences = embeddings[asked[first]] - embeddings[searched[second]]
    return np.asarray(differences * rng.choice([-1.0, 1.0], (len(differences), 1)))


def _against(real: Array, simulated: Array) -> tuple[Array, NDArray[np.int64]]:
    return np.concatenate([real, simulated]), np.repeat([1, 0], [len(real), len(simulated)])


def _name(fitted: MixtureLikelihoodRatio) -> str:
    return f"mixture (K1 = {len(fitted.same_.weights)}, K0 = {len(fitted.different_.weights)})"


def _table(models: dict[str, MixtureLikelihoodRatio], real: dict[tuple[Part, Kind], Differences]) -> Table:
    rows = []
    for name, model in models.items():
        for part in PARTS:
            shares = [f"{recognised(model, real[part, kind], kind):.2f}" for kind in KINDS]
            fit = [f"{_log_density(model, real[part, kind], kind):.1f}" for kind in KINDS]
            rows.append([f"{name}, {part}", *shares, *fit])
    return Table(["model, pairs of", "AUC same", "AUC different", "log-density same", "log-density different"], rows)


def _log_density(model: MixtureLikelihoodRatio, real: Differences, kind: Kind) -> float:
    law = model.same_ if kind == "same" else model.different_
    return float(law.log_density(np.concatenate([real.first, real.second])).mean())


def _draw(models: dict[str, MixtureLikelihoodRatio], real: dict[tuple[Part, Kind], Differences], drawn: int) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9.4), layout="constrained")
    panels = [(name, part) for name in models for part in PARTS]
    for position, (letter, (name, part)) in enumerate(zip("abcd", panels, strict=True), start=1):
        axes = figure.add_subplot(2, 2, position)
        groups = {("real", kind): real[part, kind].first[:drawn] for kind in KINDS}
        groups |= {("simulated", kind): models[name].sample(drawn, kind, seed=3 + i) for i, kind in enumerate(KINDS)}
        _map(axes, groups)
        axes.set_title(f"({letter}) {name}, {part}", fontsize=11)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, markerscale=1.6)
    return figure


def _map(axes: Axes, groups: dict[tuple[str, Kind], Array]) -> None:
    from sklearn.manifold import TSNE

    every = np.concatenate(list(groups.values()))
    points = TSNE(perplexity=min(30.0, len(every) / 5), init="pca", random_state=0).fit_transform(every)
    ends = np.cumsum([len(group) for group in groups.values()])[:-1]
    parts = dict(zip(groups, np.split(points, ends), strict=True))
    for key in sorted(parts, reverse=True):  # simulated first, so that real ones lie on top
        marker, width = ("o", 0.0) if key[0] == "real" else ("x", 1.0)
        name = f"{key[0]}, {key[1]}"
        across, up = parts[key].T
        axes.scatter(across, up, s=14, c=_COLOURS[key], marker=marker, linewidths=width, label=name)
    axes.set_xticks([])
    axes.set_yticks([])
