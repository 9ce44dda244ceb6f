"""The network in the folder of a run or a gallery: with torch, its exports, the fastest of them, and all as bytes."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lookdown.atomic import copy_folder, readable_folder
from lookdown.errors import MissingExtraError, StoredEmbedderError
from lookdown.networks.exported_embedder import ExportDescription, ExportedEmbedder, read_description
from lookdown.networks.runtimes import installed

if TYPE_CHECKING:
    from lookdown.networks.embedder import Embedder

__all__ = ["FOLDER", "AnyEmbedder", "PackedNetwork", "copy_network", "fastest", "fingerprint_at", "list_exports"]

AnyEmbedder: TypeAlias = "Embedder | ExportedEmbedder"
FOLDER = "exported"


def list_exports(owner: Path) -> dict[Path, ExportDescription]:
    """Return the exports in a run or gallery by their folders; a damaged one is refused by name."""
    folder = owner / FOLDER
    folders = sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []
    return {folder: read_description(folder) for folder in folders if ExportedEmbedder.is_at(folder)}


def fastest(owner: Path, fingerprint: str | None = None) -> AnyEmbedder:
    """Return the fastest form of the network in a run or gallery, by the speed measured at export.

    Exports of another network are refused. Exports whose runtime is not installed are ignored, in favour of torch.

    fingerprint: that of the embeddings; without it, the network in any precision.
    """
    exports = list_exports(owner)
    wanted = {
        folder: description for folder, description in exports.items() if fingerprint in (None, description.fingerprint)
    }
    sources = {description.source for description in wanted.values()} if fingerprint is not None else set()
    family = sources | {fingerprint, fingerprint_at(owner)}
    for folder, description in exports.items():
        if description.source not in family:
            raise StoredEmbedderError(
                f"{folder} was made of another network than that of {owner}; remove it, and export this one"
            )
    usable = [folder for folder, description in wanted.items() if installed(description.runtime)]
    if usable:
        return ExportedEmbedder.load(max(usable, key=lambda folder: wanted[folder].times_torch))
    if fingerprint not in (None, fingerprint_at(owner)):
        for description in wanted.values():
            raise MissingExtraError(f"{owner}, whose embeddings come from {description.name},", description.runtime)
    from lookdown.networks.stored_embedder import load_embedder

    return load_embedder(owner / "embedder")


def fingerprint_at(owner: Path) -> str | None:
    """Return the fingerprint of the embedder in a run or gallery, as its description has it; weights are not read."""
    try:
        text = (readable_folder(owner / "embedder") / "embedder.json").read_text(encoding="utf-8")
        fingerprint = json.loads(text)["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # loading it reports what is wrong
    return fingerprint if isinstance(fingerprint, str) else None


def copy_network(source: Path, owner: Path) -> None:
    """Copy an embedder and its exports from a run to a gallery, unless they are there already."""
    for folder in (source / "embedder", *list_exports(source)):
        target = owner / folder.relative_to(source)
        if not target.exists():
            copy_folder(folder, target)


@dataclass(frozen=True, slots=True)
class PackedNetwork:
    """The files of an embedder or an export as bytes, to send them to another machine: data, never code."""

    files: dict[str, bytes]

    @classmethod
    def of(cls, embedder: AnyEmbedder) -> PackedNetwork:
        """Pack an embedder."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "network")
            embedder.save(folder)
            return cls({file.name: file.read_bytes() for file in folder.iterdir()})

    def open(self, *, threads: int | None = None) -> AnyEmbedder:
        """Return the embedder.

        threads: how many run the network; with torch, this sets those of the whole process.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for name, content in self.files.items():
                (folder / name).write_bytes(content)
            if ExportedEmbedder.is_at(folder):
                return ExportedEmbedder.load(folder, threads=threads)
            import torch  # an export does not need it

            from lookdown.networks.stored_embedder import load_embedder

            if threads is not None:
                torch.set_num_threads(threads)
            return load_embedder(folder)
