"""The network of a run or a gallery for another runtime, compared and judged on the chips that are there."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips.manifest import Manifest
from lookdown.chips.reading import letterbox
from lookdown.errors import ExportError, InputError
from lookdown.evaluation import evaluate
from lookdown.gallery.gallery import Gallery
from lookdown.gallery.index.making import is_run
from lookdown.gallery.search.views import space_of
from lookdown.metrics import Metric, load_metric
from lookdown.networks.embedder import Embedder
from lookdown.networks.exported import ExportedEmbedder
from lookdown.networks.exporting import Space, export
from lookdown.networks.exports import FOLDER
from lookdown.networks.image_batches import ImageBatches
from lookdown.networks.quantizing import Quantized, quantize
from lookdown.networks.runtimes import RuntimeName
from lookdown.networks.settings import Settings
from lookdown.networks.storage import load_embedder
from lookdown.training.held_out import hold_out
from lookdown.training.run_folder import RunFolder

__all__ = ["Exported", "export_network"]

Chips = NDArray[np.uint8]  # (n, bands, size, size)

_COMPARED = 64  # chips on which float32 is compared with torch
_MOST = 2_000  # chips that are read at all
_KEPT_BACK = 0.5  # share of the labelled chips of a gallery that judge, in whole scenes


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: in float32, and in int8 if that was asked for and found good."""

    fp32: ExportedEmbedder
    int8: Quantized | None = None


@dataclass(frozen=True, slots=True)
class _Chips:
    """Chips to measure ranges on, and others, with their classes, to judge by."""

    measured: Chips
    judging: Chips
    labels: list[str]

    def judge(self, metric: Metric, embedder: ExportedEmbedder) -> float:
        """Return the mAP in percent of one half of the chips that judge, searched in the other half."""
        x = embedder.embed(self.judging)
        order = np.random.default_rng(0).permutation(len(x))
        asked, searched = order[::2], order[1::2]
        labels = np.array(self.labels)
        found = evaluate(metric, x[asked], labels[asked].tolist(), x[searched], labels[searched].tolist())
        return 100 * found.mean_average_precision


def export_network(
    owner: Path,
    runtime: RuntimeName,
    *,
    int8: bool = False,
    data: Path | None = None,
    overwrite: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> Exported:
    """Write the network of a run or gallery for a runtime, into its folder `exported`.

    data: a manifest whose chips are taken instead of those of the run or gallery. Int8 needs chips with labels: those
    that a run has kept back in training judge, for a gallery half of its scenes.
    """
    source = _of_run(owner) if is_run(owner) else _of_gallery(owner)
    note("reading chips")
    chips = source.chips(data, labelled=int8)
    if not len(chips.measured):
        raise ExportError(f"{owner} has no chips that can be read, to compare the export by; give --data MANIFEST")
    space = Space.of(space_of(source.metric).transform, source.embedder.settings.dimension, source.metric_name)
    with source.writing():
        note(f"exporting to {runtime}")
        place = owner / FOLDER / runtime
        compared = chips.measured[:: max(1, len(chips.measured) // _COMPARED)][:_COMPARED]
        made = export(source.embedder, place, runtime, compared, space, overwrite=overwrite)
        if not int8:
            return Exported(made)
        note("measuring ranges for int8")
        small = place.with_name(f"{runtime}-int8")
        judge = lambda embedder: chips.judge(source.metric, embedder)  # noqa: E731
        return Exported(made, quantize(made, small, chips.measured, judge, overwrite=overwrite))


@dataclass(frozen=True, slots=True)
class _Source:
    embedder: Embedder
    metric: Metric
    metric_name: str
    chips: Callable[..., _Chips]
    writing: Callable[[], AbstractContextManager[None]]


def _of_run(run: Path) -> _Source:
    folder = RunFolder.open(run)
    if not folder.finished:
        raise ExportError(f"{run} is not finished; go on with `lookdown train --resume {run}`")
    embedder = load_embedder(run / "embedder")
    recipe = folder.recipe

    def chips(data: Path | None, *, labelled: bool) -> _Chips:
        manifest = Manifest.read(data or recipe.data.manifest)
        trained = manifest.with_role("train")
        some = trained if len(trained) else manifest
        return _of_manifest(some, embedder.settings, recipe.data.held_out, recipe.seed, labelled=labelled)

    return _Source(embedder, load_metric(run / "metric"), "the metric of the run", chips, nullcontext)


def _of_gallery(path: Path) -> _Source:
    gallery = Gallery.open(path)
    if gallery.embedder is None:
        raise ExportError(f"{path} holds vectors from elsewhere and has no network; export it where it was made")
    embedder = load_embedder(path / "embedder")

    def chips(data: Path | None, *, labelled: bool) -> _Chips:
        if data is not None:
            return _of_manifest(Manifest.read(data), embedder.settings, _KEPT_BACK, 0, labelled=labelled)
        return _of_thumbnails(gallery, embedder.settings, labelled=labelled)

    return _Source(embedder, gallery.read_metric(gallery.metric), gallery.metric, chips, gallery.writing)


def _of_manifest(manifest: Manifest, settings: Settings, share: float, seed: int, *, labelled: bool) -> _Chips:
    objects = Manifest(manifest.table.filter(~manifest.background), manifest.root)
    labels, groups = objects.labels, objects.groups
    judging = _judging(labels, groups, share, seed) if labelled else np.zeros(len(objects), np.bool_)

    def read(rows: NDArray[np.int64]) -> tuple[Chips, NDArray[np.int64]]:
        batches = ImageBatches([paths[row] for row in rows], bands=settings.bands, size=settings.size, batch_size=256)
        found = list(batches)
        return np.concatenate([batch.images for batch in found]), np.concatenate([batch.indices for batch in found])

    paths = objects.paths
    measured, _ = read(_thinned(np.flatnonzero(~judging)))
    if not labelled:
        return _Chips(measured, measured[:0], [])
    rows = _thinned(np.flatnonzero(judging))
    squares, there = read(rows)
    return _Chips(measured, squares, [str(labels[row]) for row in rows[there]])


def _of_thumbnails(gallery: Gallery, settings: Settings, *, labelled: bool) -> _Chips:
    """Take the small pictures that a gallery keeps: the files that it was made of may be gone."""
    snapshot = gallery.snapshot
    rows = _thinned(np.arange(len(snapshot)))
    read = snapshot.read(rows, ["thumbnail", "label", "scene_group", "background"])
    some = [row for row in read if row["thumbnail"] and not row["background"]]
    if labelled:
        some = [row for row in some if row["label"]]
    squares = [_square(row["thumbnail"], settings) for row in some]
    chips = np.stack(squares) if squares else np.empty((0, settings.bands, settings.size, settings.size), np.uint8)
    if not labelled:
        return _Chips(chips, chips[:0], [])
    labels = [str(row["label"]) for row in some]
    judging = _judging(labels, [row["scene_group"] for row in some], _KEPT_BACK, 0)
    return _Chips(chips[~judging], chips[judging], [label for label, kept in zip(labels, judging, strict=True) if kept])


def _judging(labels: Sequence[str | None], groups: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    if not labels or any(label is None for label in labels):
        raise InputError(
            "int8 is judged by how well it finds, and these chips have no labels; give --data MANIFEST with some"
        )
    return hold_out([str(label) for label in labels], groups, share, seed)


def _thinned(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return every so manieth row, so that few come of many places."""
    return rows[:: max(1, -(-len(rows) // _MOST))]


def _square(thumbnail: bytes, settings: Settings) -> Chips:
    with Image.open(io.BytesIO(thumbnail)) as image:
        pixels = np.asarray(image.convert("RGB" if settings.bands == 3 else "L"))
    whole = pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], settings.bands, axis=2)
    return letterbox(whole, settings.size).transpose(2, 0, 1)
