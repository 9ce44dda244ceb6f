"""The exports of a network, beside it in the folder of a run or a gallery, and the fastest that can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lookdown.atomic import copy_folder, readable_folder
from lookdown.errors import MissingExtraError, StoredEmbedderError
from lookdown.networks.exported import About, ExportedEmbedder, read_about
from lookdown.networks.runtimes import installed

if TYPE_CHECKING:
    from lookdown.networks.embedder import Embedder

__all__ = ["FOLDER", "AnyEmbedder", "copy_network", "fastest", "fingerprint_at", "list_exports"]

AnyEmbedder: TypeAlias = "Embedder | ExportedEmbedder"
FOLDER = "exported"


def list_exports(owner: Path) -> dict[Path, About]:
    """Return the exports in a run or gallery by their folders; one that is damaged is refused by name."""
    place = owner / FOLDER
    folders = sorted(path for path in place.iterdir() if not path.name.startswith(".")) if place.is_dir() else []
    return {folder: read_about(folder) for folder in folders if ExportedEmbedder.is_at(folder)}


def fastest(owner: Path, fingerprint: str | None = None) -> AnyEmbedder:
    """Return what embeds fastest of all that gives embeddings of this fingerprint, or of any, in a run or gallery.

    Fast is what was measured when an export was made. Exports of another network are refused, those whose runtime is
    not installed are passed over for torch.
    """
    exports = list_exports(owner)
    wanted = {folder: about for folder, about in exports.items() if fingerprint in (None, about.fingerprint)}
    sources = {about.source for about in wanted.values()} if fingerprint is not None else set()
    family = sources | {fingerprint, fingerprint_at(owner)}
    for folder, about in exports.items():
        if about.source not in family:
            raise StoredEmbedderError(
                f"{folder} was made of another network than that of {owner}; remove it, and export this one"
            )
    usable = [folder for folder, about in wanted.items() if installed(about.runtime)]
    if usable:
        return ExportedEmbedder.load(max(usable, key=lambda folder: wanted[folder].times_torch))
    if fingerprint not in (None, fingerprint_at(owner)):
        for about in wanted.values():
            raise MissingExtraError(f"{owner}, whose embeddings come from {about.name},", about.runtime)
    from lookdown.networks.storage import load_embedder

    return load_embedder(owner / "embedder")


def fingerprint_at(owner: Path) -> str | None:
    """Return the fingerprint that the embedder of a run or gallery says it has, without reading its weights."""
    try:
        found = json.loads((readable_folder(owner / "embedder") / "embedder.json").read_text(encoding="utf-8"))[
            "fingerprint"
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # who loads it is told what is wrong with it
    return found if isinstance(found, str) else None


def copy_network(source: Path, owner: Path) -> None:
    """Copy an embedder and its exports, as far as they are not there yet, from a run to a gallery."""
    for folder in (source / "embedder", *list_exports(source)):
        there = owner / folder.relative_to(source)
        if not there.exists():
            copy_folder(folder, there)
