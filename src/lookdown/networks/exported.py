"""An embedder in another runtime than torch: images in, embeddings and their transforms out, from one folder of data.

`export.json` says what the model is of, and what was measured when it was made; torch is not imported here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from lookdown.atomic import readable_folder
from lookdown.errors import StoredEmbedderError
from lookdown.networks.embedding import EmbeddedChips, Embeddings, Turns, check_turns, embed_batches
from lookdown.networks.image_batches import ImageBatches, Images
from lookdown.networks.runtimes import FILES, Runtime, RuntimeName, open_runtime
from lookdown.networks.settings import Settings
from lookdown.progress import Progress, no_progress
from lookdown.stored import StoredKind

__all__ = ["About", "ExportedEmbedder", "Precision", "read_about", "write_export"]

Precision = Literal["fp32", "int8"]
FOLDER = StoredKind(
    name="an export",
    marker="export.json",
    files=("export.json", *(name for names in FILES.values() for name in names)),
    format="lookdown-export",
    version=1,
    written_by="`lookdown export`",
    again="export the network again",
    error=StoredEmbedderError,
    required={
        "source": str,
        "fingerprint": str,
        "transformed by": str,
        "width": int,
        "measured": dict,
        "made with": dict,
    },
)
_BATCH = 256  # images that are given to a runtime together, which divides them by itself


@dataclass(frozen=True, slots=True)
class About:
    """What an export is of."""

    runtime: RuntimeName
    precision: Precision
    settings: Settings
    source: str  # fingerprint of the embedder that was exported
    fingerprint: str  # of the embeddings: that of the source where they are the same, one of its own in int8
    transformed_by: str  # the metric whose transform is in the graph
    width: int  # numbers in a transform
    measured: Mapping[str, float]  # when it was made
    made_with: Mapping[str, str]

    @property
    def name(self) -> str:
        """As its folder is called."""
        return self.runtime if self.precision == "fp32" else f"{self.runtime}-{self.precision}"

    @property
    def times_torch(self) -> float:
        """Images a second over those of torch, where and when it was made."""
        return float(self.measured.get("times torch", 1.0))


class ExportedEmbedder:
    """Embeds as the `Embedder` does that it was made of, to the tolerance that it was checked by."""

    def __init__(self, folder: Path, about: About, *, threads: int | None = None) -> None:
        self.folder, self.about, self.threads = folder, about, threads

    @staticmethod
    def is_at(path: str | Path) -> bool:
        """Whether a folder holds an export."""
        return FOLDER.is_at(path)

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None) -> ExportedEmbedder:
        """Read what `lookdown export` wrote: data for its runtime, never code; what is damaged is refused by name.

        threads: that run the network; all cores unless given.
        """
        folder = readable_folder(Path(path))
        embedder = cls(folder, read_about(folder), threads=threads)
        settings = embedder.settings
        blank = np.zeros((1, settings.bands, settings.size, settings.size), np.uint8)
        try:
            shapes = [values.shape for values in embedder._runtime.run(blank)]
        except (RuntimeError, ValueError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise StoredEmbedderError(
                f"{folder} cannot be run here: {reason}; export the network again with this lookdown"
            ) from error
        if shapes != [(1, settings.dimension), (1, embedder.about.width)]:
            raise StoredEmbedderError(f"{folder} holds a model of another network than it says; export it again")
        return embedder

    @property
    def settings(self) -> Settings:
        """What the network takes and gives."""
        return self.about.settings

    @property
    def fingerprint(self) -> str:
        """A digest of what decides the embeddings: embedders that share it can be used in turn."""
        return self.about.fingerprint

    def embed(
        self, images: Images, *, turns: Turns = 1, batch_size: int = _BATCH, progress: Progress = no_progress
    ) -> Embeddings:
        """Return raw embeddings, a row an image, as `Embedder.embed` does."""
        return self._embed(images, 0, turns, batch_size, progress, skip=False).embeddings

    def embed_chips(
        self, chips: Images, *, turns: Turns = 1, batch_size: int = _BATCH, progress: Progress = no_progress
    ) -> EmbeddedChips:
        """Return raw embeddings of the chips that can be read, as `Embedder.embed_chips` does."""
        return self._embed(chips, 0, turns, batch_size, progress, skip=True)

    def embed_transformed(
        self, images: Images, *, batch_size: int = _BATCH, progress: Progress = no_progress
    ) -> Embeddings:
        """Return z, a row an image: L2 distance between them ranks as the metric does that is in the graph."""
        return self._embed(images, 1, 1, batch_size, progress, skip=False).embeddings

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a copy to the folder `path`."""
        files = {name: (self.folder / name).read_bytes() for name in (*FILES[self.about.runtime], FOLDER.marker)}
        FOLDER.replace(Path(path), files, overwrite=overwrite)

    @cached_property
    def _runtime(self) -> Runtime:
        return open_runtime(self.about.runtime, self.folder, threads=self.threads)

    def _embed(
        self, images: Images, output: int, turns: Turns, batch_size: int, progress: Progress, *, skip: bool
    ) -> EmbeddedChips:
        check_turns(turns)
        batches = ImageBatches(images, bands=self.settings.bands, size=self.settings.size, batch_size=batch_size)
        width = (self.settings.dimension, self.about.width)[output]
        return embed_batches(batches, partial(self._numbers, output=output, turns=turns), width, progress, skip=skip)

    def _numbers(self, images: Any, *, output: int, turns: Turns) -> Embeddings:
        pixels = np.asarray(images.cpu() if hasattr(images, "cpu") else images)
        if turns == 1:
            return self._runtime.run(pixels)[output]
        views = [self._runtime.run(np.rot90(pixels, turn, (2, 3)))[output] for turn in range(turns)]
        mean: Embeddings = np.mean(views, axis=0, dtype=np.float32)
        return mean


def write_export(folder: Path, about: About, model: Mapping[str, bytes], *, overwrite: bool = False) -> None:
    """Write a model and what it is of, whole or not at all; int8 gets a fingerprint of its own."""
    if about.precision != "fp32":
        digest = hashlib.sha256(f"{about.source} {about.name}".encode())
        for name in sorted(model):
            digest.update(model[name])
        about = replace(about, fingerprint=digest.hexdigest())
    description = {
        "made with": dict(about.made_with),
        "runtime": about.runtime,
        "precision": about.precision,
        "settings": asdict(about.settings),
        "source": about.source,
        "fingerprint": about.fingerprint,
        "transformed by": about.transformed_by,
        "width": about.width,
        "measured": dict(about.measured),
    }
    FOLDER.write(folder, description, model, overwrite=overwrite)


def read_about(path: Path) -> About:
    """Read what an export is of, and refuse it by name if it is damaged or none."""
    description = FOLDER.describe(path)
    runtime: Any = description.get("runtime")
    precision: Any = description.get("precision")
    if runtime not in get_args(RuntimeName) or precision not in get_args(Precision):
        raise StoredEmbedderError(
            f"{path} names the runtime {runtime!r} in {precision!r}, which this lookdown does not know; export again"
        )
    FOLDER.read(path, description, FILES[runtime])
    stored = description["settings"]
    try:
        settings = Settings(**{**stored, "mean": tuple(stored["mean"]), "std": tuple(stored["std"])})
    except (TypeError, KeyError, ValueError) as error:
        raise StoredEmbedderError(f"{path} has settings of no network ({error}); export the network again") from error
    return About(
        runtime,
        precision,
        settings,
        description["source"],
        description["fingerprint"],
        description["transformed by"],
        description["width"],
        description["measured"],
        description["made with"],
    )
