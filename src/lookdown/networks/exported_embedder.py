"""An embedder that runs without torch: images in, embeddings and their transforms out.

It lies in a folder with the model and `export.json`: which network it came from, and what was measured then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from lookdown.atomic import StoredKind, readable_folder
from lookdown.chips.reader import ImageReader, Images
from lookdown.errors import StoredEmbedderError
from lookdown.networks.embedding import EmbeddedChips, EmbedderSettings, Embeddings, Turns, check_turns, embed_all
from lookdown.networks.runtimes import FILES, Runtime, RuntimeName, open_runtime
from lookdown.progress import Progress, no_progress

__all__ = ["ExportDescription", "ExportedEmbedder", "Precision", "read_description", "write_export"]

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
_BATCH_IMAGES = 256  # given to a runtime at once, which divides them by itself


@dataclass(frozen=True, slots=True)
class ExportDescription:
    """What `export.json` says of a model; its keys have blanks where the names here have underscores."""

    runtime: RuntimeName
    precision: Precision
    settings: EmbedderSettings
    source: str  # fingerprint of the embedder that was exported
    fingerprint: str  # of the embeddings: the same as the source in float32, its own in int8
    transformed_by: str  # the metric whose transform is in the graph
    width: int  # numbers in a transform
    measured: Mapping[str, float]  # when it was made
    made_with: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.runtime if self.precision == "fp32" else f"{self.runtime}-{self.precision}"

    @property
    def times_torch(self) -> float:
        """How many times as fast as torch it was, when and where it was exported."""
        return float(self.measured.get("times torch", 1.0))


class ExportedEmbedder:
    """A network in another runtime; it embeds as the `Embedder` it came from, within the tolerance of the export."""

    def __init__(self, folder: Path, description: ExportDescription, *, threads: int | None = None) -> None:
        self.folder, self.description, self.threads = folder, description, threads

    @staticmethod
    def is_at(path: str | Path) -> bool:
        """Whether a folder holds an export."""
        return FOLDER.is_at(path)

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None) -> ExportedEmbedder:
        """Read what `lookdown export` wrote: data for its runtime, never code; a damaged folder is refused.

        threads: how many run the network; by default one a core.
        """
        folder = readable_folder(Path(path))
        embedder = cls(folder, read_description(folder), threads=threads)
        settings = embedder.settings
        blank = np.zeros((1, settings.bands, settings.size, settings.size), np.uint8)
        try:
            shapes = [values.shape for values in embedder._runtime.run(blank)]
        except (RuntimeError, ValueError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise StoredEmbedderError(
                f"{folder} cannot be run here: {reason}; export the network again with this lookdown"
            ) from error
        if shapes != [(1, settings.dimension), (1, embedder.description.width)]:
            raise StoredEmbedderError(f"{folder} holds a model of another network than it says; export it again")
        return embedder

    @property
    def settings(self) -> EmbedderSettings:
        """What the network takes and returns."""
        return self.description.settings

    @property
    def fingerprint(self) -> str:
        """A digest of all that determines the embeddings; embedders with the same one are interchangeable."""
        return self.description.fingerprint

    def embed(
        self, images: Images, *, turns: Turns = 1, batch_size: int = _BATCH_IMAGES, progress: Progress = no_progress
    ) -> Embeddings:
        """Return raw embeddings, a row an image, as `Embedder.embed` does."""
        return self._embed(images, 0, turns, batch_size, progress, skip=False).embeddings

    def embed_chips(
        self, chips: Images, *, turns: Turns = 1, batch_size: int = _BATCH_IMAGES, progress: Progress = no_progress
    ) -> EmbeddedChips:
        """Return raw embeddings of the chips that can be read, as `Embedder.embed_chips` does."""
        return self._embed(chips, 0, turns, batch_size, progress, skip=True)

    def embed_transformed(
        self, images: Images, *, batch_size: int = _BATCH_IMAGES, progress: Progress = no_progress
    ) -> Embeddings:
        """Return z, one row for each image; their L2 distances rank as the exported metric does."""
        return self._embed(images, 1, 1, batch_size, progress, skip=False).embeddings

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a copy to the folder `path`."""
        files = {name: (self.folder / name).read_bytes() for name in (*FILES[self.description.runtime], FOLDER.marker)}
        FOLDER.replace(Path(path), files, overwrite=overwrite)

    @cached_property
    def _runtime(self) -> Runtime:
        return open_runtime(self.description.runtime, self.folder, threads=self.threads)

    def _embed(
        self, images: Images, output: int, turns: Turns, batch_size: int, progress: Progress, *, skip: bool
    ) -> EmbeddedChips:
        """Run the network for its first output, embeddings, or for its second, transforms."""
        check_turns(turns)

        def run(batch: Any) -> Embeddings:
            pixels = np.asarray(batch.cpu() if hasattr(batch, "cpu") else batch)
            views = [self._runtime.run(np.rot90(pixels, turn, (2, 3)))[output] for turn in range(turns)]
            return np.asarray(views[0] if turns == 1 else np.mean(views, axis=0, dtype=np.float32))

        reader = ImageReader(images, bands=self.settings.bands, size=self.settings.size, batch_size=batch_size)
        width = (self.settings.dimension, self.description.width)[output]
        return embed_all(reader, run, width, progress, skip=skip)


def write_export(
    folder: Path, description: ExportDescription, model: Mapping[str, bytes], *, overwrite: bool = False
) -> None:
    """Write a model and its description, whole or not at all; int8 gets a fingerprint of its own."""
    if description.precision != "fp32":
        digest = hashlib.sha256(f"{description.source} {description.name}".encode())
        for name in sorted(model):
            digest.update(model[name])
        description = replace(description, fingerprint=digest.hexdigest())
    stored = {name.replace("_", " "): value for name, value in asdict(description).items()}
    FOLDER.write(folder, stored, model, overwrite=overwrite)


def read_description(path: Path) -> ExportDescription:
    """Read the description of an export; refuse a folder that is damaged or holds no export."""
    stored = FOLDER.describe(path)
    runtime: Any = stored.get("runtime")
    precision: Any = stored.get("precision")
    if runtime not in get_args(RuntimeName) or precision not in get_args(Precision):
        raise StoredEmbedderError(
            f"{path} names the runtime {runtime!r} in {precision!r}, which this lookdown does not know; export again"
        )
    FOLDER.read(path, stored, FILES[runtime])
    try:
        settings = EmbedderSettings.of_stored(stored["settings"])
    except (TypeError, KeyError, ValueError) as error:
        raise StoredEmbedderError(f"{path} has settings of no network ({error}); export the network again") from error
    values = {field.name: stored[field.name.replace("_", " ")] for field in fields(ExportDescription)}
    return ExportDescription(**values | {"settings": settings})
