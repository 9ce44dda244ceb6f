"""A network as bytes, to be sent to where images are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from lookdown.networks.exported import ExportedEmbedder
from lookdown.networks.exports import AnyEmbedder

__all__ = ["PackedNetwork"]


@dataclass(frozen=True, slots=True)
class PackedNetwork:
    """The files of an embedder, or of an export, as they lie in its folder: data, never code."""

    files: dict[str, bytes]

    @classmethod
    def of(cls, embedder: AnyEmbedder) -> PackedNetwork:
        """Pack an embedder in the form that it has."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "network")
            embedder.save(folder)
            return cls({file.name: file.read_bytes() for file in folder.iterdir()})

    def open(self, *, threads: int | None = None) -> AnyEmbedder:
        """Return the embedder; with torch, `threads` are those of the whole process."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name, content in self.files.items():
                (folder / name).write_bytes(content)
            if ExportedEmbedder.is_at(folder):
                return ExportedEmbedder.load(folder, threads=threads)
            import torch  # an export does without

            from lookdown.networks.storage import load_embedder

            if threads is not None:
                torch.set_num_threads(threads)
            return load_embedder(folder)
