"""Export of the network of a run or a gallery, compared with torch and judged on its own chips."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips.manifest import Manifest
from lookdown.chips.pixels import letterbox
from lookdown.chips.reader import ImageReader
from lookdown.errors import ExportError, InputError
from lookdown.evaluation import evaluate
from lookdown.gallery.gallery import Gallery
from lookdown.gallery.index.creation import is_run
from lookdown.gallery.search.space import search_space
from lookdown.metrics import Metric, load_metric
from lookdown.networks.embedder import Embedder
from lookdown.networks.embedding import EmbedderSettings
from lookdown.networks.export import Space, export
from lookdown.networks.exported_embedder import ExportedEmbedder
from lookdown.networks.network_folder import FOLDER
from lookdown.networks.quantize import QuantizationReport, quantize
from lookdown.networks.runtimes import RuntimeName
from lookdown.networks.stored_embedder import load_embedder
from lookdown.training.run_folder import RunFolder
from lookdown.training.training_data import hold_out

__all__ = ["ExportReport", "export_network"]

Chips = NDArray[np.uint8]  # (n, bands, size, size)

_COMPARED_CHIPS = 64  # chips on which float32 is compared with torch
_MAX_CHIPS = 2_000  # chips that are read at most
_JUDGING_SHARE = 0.5  # of the labelled chips of a gallery, in whole scenes


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The export in float32, and what became of int8 if that was wanted."""

    fp32: ExportedEmbedder
    int8: QuantizationReport | None = None


@dataclass(frozen=True, slots=True)
class _Chips:
    """Chips on which ranges are measured, and other chips with their labels, on which int8 is judged."""

    measured: Chips
    judging: Chips
    labels: list[str]

    def judge(self, metric: Metric, embedder: ExportedEmbedder) -> float:
        """Return the mAP in percent of searching for one half of the judging chips in the other half."""
        x = embedder.embed(self.judging)
        order = np.random.default_rng(0).permutation(len(x))
        query, gallery = order[::2], order[1::2]
        labels = np.array(self.labels)
        evaluation = evaluate(metric, x[query], labels[query].tolist(), x[gallery], labels[gallery].tolist())
        return 100 * evaluation.mean_average_precision


def export_network(
    owner: Path,
    runtime: RuntimeName,
    *,
    int8: bool = False,
    data: Path | None = None,
    overwrite: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> ExportReport:
    """Write the network of a run or gallery for a runtime, into its folder `exported`.

    owner: the folder of the run or gallery.
    int8: also export to 8-bit integers, if that costs little mAP. This needs labelled chips: of a run, those held out
        in training; of a gallery, half of its scenes.
    data: a manifest whose chips are used instead of those of the run or gallery.
    overwrite: replace exports that are there.
    note: called with each step that begins.
    """
    note("reading chips")
    source = (_of_run if is_run(owner) else _of_gallery)(owner, data, labelled=int8)
    chips = source.chips
    if not len(chips.measured):
        raise ExportError(f"{owner} has no chips that can be read, on which to compare the export; give `data`")
    linear = search_space(source.metric).linear
    space = Space.of(linear.transform, source.embedder.settings.dimension, source.metric_name)
    with source.writing:
        note(f"exporting to {runtime}")
        folder = owner / FOLDER / runtime
        compared = chips.measured[:: max(1, len(chips.measured) // _COMPARED_CHIPS)][:_COMPARED_CHIPS]
        exported = export(source.embedder, folder, runtime, compared, space, overwrite=overwrite)
        if not int8:
            return ExportReport(exported)
        note("measuring ranges for int8")
        small = folder.with_name(f"{runtime}-int8")
        judge = partial(chips.judge, source.metric)
        return ExportReport(exported, quantize(exported, small, chips.measured, judge, overwrite=overwrite))


@dataclass(frozen=True, slots=True)
class _Source:
    embedder: Embedder
    metric: Metric
    metric_name: str
    chips: _Chips
    writing: AbstractContextManager[None]


def _of_run(run: Path, data: Path | None, *, labelled: bool) -> _Source:
    folder = RunFolder.open(run)
    if not folder.finished:
        raise ExportError(f"{run} is not finished; continue with `lookdown train --resume {run}`")
    embedder, recipe = load_embedder(run / "embedder"), folder.recipe
    manifest = Manifest.read(data or recipe.data.manifest)
    trained = manifest.with_role("train")
    used = trained if len(trained) else manifest
    chips = _of_manifest(used, embedder.settings, recipe.data.held_out, recipe.seed, labelled=labelled)
    return _Source(embedder, load_metric(run / "metric"), "the metric of the run", chips, nullcontext())


def _of_gallery(path: Path, data: Path | None, *, labelled: bool) -> _Source:
    gallery = Gallery.open(path)
    if gallery.embedder is None:
        raise ExportError(f"{path} holds vectors from elsewhere and has no network; export it where it was made")
    embedder = load_embedder(path / "embedder")
    if data is None:
        chips = _of_thumbnails(gallery, embedder.settings, labelled=labelled)
    else:
        chips = _of_manifest(Manifest.read(data), embedder.settings, _JUDGING_SHARE, 0, labelled=labelled)
    return _Source(embedder, gallery.read_metric(gallery.metric), gallery.metric, chips, gallery.writing())


def _of_manifest(manifest: Manifest, settings: EmbedderSettings, share: float, seed: int, *, labelled: bool) -> _Chips:
    objects = Manifest(manifest.table.filter(~manifest.background), manifest.root)
    labels, groups = objects.labels, objects.groups
    judging = _judging(labels, groups, share, seed) if labelled else np.zeros(len(objects), np.bool_)

    paths = objects.paths

    def read(rows: NDArray[np.int64]) -> tuple[Chips, NDArray[np.int64]]:
        return ImageReader([paths[row] for row in rows], bands=settings.bands, size=settings.size).read_all()

    measured, _ = read(_thinned(np.flatnonzero(~judging)))
    if not labelled:
        return _Chips(measured, measured[:0], [])
    rows = _thinned(np.flatnonzero(judging))
    squares, positions = read(rows)
    return _Chips(measured, squares, [str(labels[row]) for row in rows[positions]])


def _of_thumbnails(gallery: Gallery, settings: EmbedderSettings, *, labelled: bool) -> _Chips:
    """Use the thumbnails of a gallery, because the files it was made from may be gone."""
    snapshot = gallery.snapshot
    rows = _thinned(np.arange(len(snapshot)))
    records = snapshot.read(rows, ["thumbnail", "label", "scene_group", "background"])
    objects = [row for row in records if row["thumbnail"] and not row["background"] and (row["label"] or not labelled)]
    squares = [_square(row["thumbnail"], settings) for row in objects]
    chips = np.stack(squares) if squares else np.empty((0, settings.bands, settings.size, settings.size), np.uint8)
    if not labelled:
        return _Chips(chips, chips[:0], [])
    labels = [str(row["label"]) for row in objects]
    judging = _judging(labels, [row["scene_group"] for row in objects], _JUDGING_SHARE, 0)
    return _Chips(chips[~judging], chips[judging], [label for label, kept in zip(labels, judging, strict=True) if kept])


def _judging(labels: Sequence[str | None], groups: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    if not labels or any(label is None for label in labels):
        raise InputError(
            "int8 is judged by its mAP, and these chips have no labels; give `data`, a manifest with labelled chips"
        )
    return hold_out([str(label) for label in labels], groups, share, seed)


def _thinned(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return at most `_MAX_CHIPS` rows, evenly spaced."""
    return rows[:: max(1, -(-len(rows) // _MAX_CHIPS))]


def _square(thumbnail: bytes, settings: EmbedderSettings) -> Chips:
    with Image.open(io.BytesIO(thumbnail)) as image:
        pixels = np.asarray(image.convert("RGB" if settings.bands == 3 else "L"))
    whole = pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], settings.bands, axis=2)
    return letterbox(whole, settings.size).transpose(2, 0, 1)
