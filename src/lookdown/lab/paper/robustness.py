"""How much of a search survives when the query is noisy, coarse or turned; the gallery stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import interpolate

from lookdown.chips.reader import ImageReader
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page, PageFigure, Table, spread
from lookdown.lab.paper.tasks import MAR, SHIPS, Task
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Cosine
from lookdown.networks import Embedder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DEGRADATIONS", "NETWORKS", "Degradation", "coarser", "make", "noisy", "query_images", "searched", "turned"]

Images = NDArray[np.uint8]  # (n, bands, size, size)
Curves = Mapping[str, Mapping[tuple[str, int], Sequence[float]]]  # network to kind and level to mAP of each seed

NETWORKS = {"identity": "identity, cosine", "unified": "unified, cosine", "glrt": "glrt, likelihood ratio"}


def noisy(images: Images, sigma: int) -> Images:
    """Add Gaussian noise of so many grey levels to every pixel and band, the same for the same images."""
    noise = np.random.default_rng(0).normal(0, sigma, images.shape)
    return (images + noise).round().clip(0, 255).astype(np.uint8)


def coarser(images: Images, factor: int) -> Images:
    """Average squares of factor x factor pixels, and bring the result back to the old size."""
    pixels = torch.from_numpy(images).float()
    small = interpolate(pixels, size=max(1, images.shape[-1] // factor), mode="area")
    back = interpolate(small, size=images.shape[-2:], mode="bilinear", align_corners=False)
    return back.round().clamp(0, 255).to(torch.uint8).numpy()


def turned(images: Images, degrees: int) -> Images:
    """Turn counterclockwise about the centre; corners that come into view have the mean colour of their image."""
    result = np.empty_like(images)
    for image, target in zip(images, result, strict=True):
        for band, out in zip(image, target, strict=True):  # Pillow turns no more than four bands together
            fill = round(float(band.mean()))
            out[:] = Image.fromarray(band).rotate(degrees, Image.Resampling.BILINEAR, fillcolor=fill)
    return result


@dataclass(frozen=True, slots=True)
class Degradation:
    """A way to degrade an image, by levels; `none` is the level that changes nothing."""

    name: str
    unit: str
    row: str  # of the table; a level goes into it
    none: int
    levels: tuple[int, ...]
    degrade: Callable[[Images, int], Images]


DEGRADATIONS = (
    Degradation("noise", "sigma, grey levels", "noise, {} grey levels", 0, (10, 25, 50), noisy),
    Degradation("resolution", "pixels a side, divided by", "1/{} of the pixels a side", 1, (2, 4), coarser),
    Degradation("rotation", "degrees", "turned by {} degrees", 0, (15, 45, 90), turned),
)


def make(experiment: Experiment) -> Page:
    """Return the mAP by the kind and the level of degradation, of three networks and two tasks."""
    kinds = (
        [replace(kind, levels=kind.levels[:1]) for kind in DEGRADATIONS]
        if experiment.scale == "smoke"
        else DEGRADATIONS
    )
    curves = {task: searched(experiment, task, kinds) for task in (MAR, SHIPS)}
    captions = "\n".join(experiment.caption(task) for task in curves)
    method = (
        "mAP in percent of queries that were degraded after they had been brought to the size that the network reads: "
        "Gaussian noise on every pixel and band, of so many grey levels out of 255; fewer pixels, brought back to the "
        "old size; a turn, with the corners in the mean colour. After the comma: the change from the query as it is, "
        "paired over seeds."
    )
    tables = [_table(task, values, kinds) for task, values in curves.items()]
    legend = "mAP of degraded queries; the leftmost point of a curve is the query as it is."
    picture = PageFigure("robustness", _figure(curves, kinds), legend)
    return Page("Degraded queries", f"{captions}\n\n{method}", (*tables, picture))


def searched(experiment: Experiment, task: Task, kinds: Sequence[Degradation]) -> Curves:
    """Return the mAP of each network for each kind and level, that of the query as it is among them."""
    curves: dict[str, dict[tuple[str, int], list[float]]] = {loss: {} for loss in NETWORKS}
    for seed in experiment.each_seed:
        for loss, points in _searched_once(experiment, task, kinds, seed).items():
            for key, value in points.items():
                curves[loss].setdefault(key, []).append(value)
    return curves


def _searched_once(
    experiment: Experiment, task: Task, kinds: Sequence[Degradation], seed: int
) -> dict[str, dict[tuple[str, int], float]]:
    recipes = {loss: experiment.recipe(task, loss, seed) for loss in NETWORKS}
    cases = {loss: experiment.case_of(task, recipe) for loss, recipe in recipes.items()}
    embedders = {loss: experiment.trained(task, recipe).embedder() for loss, recipe in recipes.items()}
    case, recipe = cases["glrt"], recipes["glrt"]
    images = query_images(
        [case.domain.paths[row] for row in case.roles.query], recipe.network.size, recipe.network.bands
    )
    levels = [(kind, level) for kind in kinds for level in (kind.none, *kind.levels)]
    curves: dict[str, dict[tuple[str, int], float]] = {loss: {} for loss in NETWORKS}
    for kind, level in levels:
        experiment.note(f"{task.name}, seed {seed}: {kind.name} {level}")
        changed = images if level == kind.none else kind.degrade(images, level)
        for loss, embeddings in _embedded(embedders, changed, frozen=recipe.trunk == "frozen").items():
            metric = cases[loss].source if loss == "glrt" else Cosine().fit(cases[loss].embeddings)
            again = _with_queries(cases[loss], embeddings)
            curves[loss][kind.name, level] = again.mean_average_precision(metric)
    return curves


def _embedded(embedders: Mapping[str, Embedder], images: Images, *, frozen: bool) -> dict[str, NDArray[np.float32]]:
    """Return the embeddings of every network; a frozen trunk, which they share, sees the images once."""
    if not frozen:
        return {loss: embedder.embed(images) for loss, embedder in embedders.items()}
    features = torch.from_numpy(next(iter(embedders.values())).embed_features(images).embeddings)
    with torch.inference_mode():
        return {loss: embedder.head(features).float().numpy() for loss, embedder in embedders.items()}


def query_images(paths: Sequence[Path], size: int, bands: int = 3) -> Images:
    """Return chips as the network reads them; a domain holds none that cannot be read."""
    return ImageReader(paths, bands=bands, size=size).read_all()[0]


def _with_queries(case: Case, embeddings: NDArray[np.float32]) -> Case:
    changed = case.embeddings.copy()
    changed[case.roles.query] = embeddings
    return replace(case, embeddings=changed)


def _table(task: Task, curves: Curves, kinds: Sequence[Degradation]) -> Table:
    first = kinds[0].name, kinds[0].none
    rows = [("as it is", *(spread(curves[loss][first]) for loss in NETWORKS))]
    for kind in kinds:
        for level in kind.levels:
            pairs = [(curves[loss][kind.name, level], curves[loss][first]) for loss in NETWORKS]
            cells = (
                f"{np.mean(values):.1f}, {spread(np.subtract(values, plain).tolist(), sign=True)}"
                for values, plain in pairs
            )
            rows.append((kind.row.format(level), *cells))
    return Table(("query", *NETWORKS.values()), rows, task.name)


def _figure(curves: Mapping[Task, Curves], kinds: Sequence[Degradation]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    panels = figure.subplots(len(curves), len(kinds), sharey="row", squeeze=False)
    for row, (task, of_task) in zip(panels, curves.items(), strict=True):
        for axes, kind in zip(row, kinds, strict=True):
            levels = kind.none, *kind.levels
            for loss, marker in zip(NETWORKS, "os^", strict=True):
                values = [np.mean(of_task[loss][kind.name, level]) for level in levels]
                axes.plot(levels, values, marker=marker, markersize=5, label=NETWORKS[loss])
            axes.set_xticks(levels)
            axes.grid(alpha=0.3)
        row[0].set_ylabel(f"{task.name}\nmAP, %")
    for axes, kind in zip(panels[-1], kinds, strict=True):
        axes.set_xlabel(f"{kind.name}: {kind.unit}")
    lines, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=3, frameon=False)
    return figure
