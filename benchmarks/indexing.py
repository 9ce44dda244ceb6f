"""An archive of JPEG chips into a gallery, against the network alone on the same chips in memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embedding import Bare, exports
from lookdown import Embedder, Gallery
from lookdown.chips.manifest import Manifest
from lookdown.chips.reader import ImageReader
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.networks import ExportedEmbedder
from sidebyside import QUICK, Row, compare, report

CHIPS = 64 if QUICK else 4096
TURNS = 3
# Times the network alone: float32 is to be 0.8 as fast, with a larger share outside the network the faster that is.
LIMITS = {"openvino": 1 / 0.8, "openvino-int8": 1 / 0.4}


def archive(folder: Path) -> list[Path]:
    """Return JPEG chips of 144 pixels at most: real ships where they are at hand, else synthetic ones."""
    real = Path(os.environ.get("LOOKDOWN_DATA", "")) / "fair1m_ships" / "chips"
    if os.environ.get("LOOKDOWN_DATA") and real.is_dir():
        return sorted(real.rglob("*.jpg"))[:CHIPS]
    draw_world(World(kinds="ships", chips=max(10, CHIPS // 16), size=128), folder)
    return Manifest.read(folder).paths[:CHIPS]


def gathered(paths: list[Path], folder: Path) -> Path:
    """Return one folder of links to the chips, as an archive would hold them."""
    folder.mkdir()
    for number, path in enumerate(paths):
        (folder / f"{number:05d}.jpg").symlink_to(path.resolve())
    return folder


def squares(paths: list[Path]) -> NDArray[np.uint8]:
    """Return the chips as the network takes them."""
    return ImageReader(paths, bands=3, size=112).read_all()[0]


def row(exported: ExportedEmbedder, folder: Path, images: NDArray[np.uint8], limit: float) -> Row:
    """Compare filling a new gallery with the bare network; both are compiled before their clocks start."""
    bare = Bare(exported)
    with tempfile.TemporaryDirectory() as scratch:
        new = [Gallery.create(Path(scratch) / str(turn), exported) for turn in range(1 + TURNS)]  # one to warm up
        for gallery in new:
            assert gallery.embedder is not None
            gallery.embedder.embed(images[:1])  # compiled at its first image

        def index() -> None:
            assert new.pop().add(folder).added == len(images)

        what = f"{len(images):,} JPEG chips indexed by {exported.description.name}: read, embedded, written"
        peer = "bare OpenVINO on the same chips in memory"
        return compare(what, index, peer, lambda: bare.run(images), limit=limit, turns=TURNS)


def main() -> None:
    """Measure with all cores."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = archive(Path(scratch) / "world")
        folder = gathered(paths, Path(scratch) / "archive")
        images = squares(paths)
        exported = exports(Embedder("tf_efficientnet_lite0").eval(), images, Path(scratch) / "exported")
        rows = [row(exported[name], folder, images, limit) for name, limit in LIMITS.items()]
    report("Indexing", rows, threads=None)


if __name__ == "__main__":
    main()
