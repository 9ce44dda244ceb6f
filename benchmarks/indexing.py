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
from lookdown.chips.synthetic.world import World, make
from lookdown.networks import ExportedEmbedder
from lookdown.networks.image_batches import ImageBatches
from sidebyside import QUICK, Row, compare, report

CHIPS = 64 if QUICK else 4096
# Times the network alone: float32 is to be 0.8 as fast, with a larger share outside the network the faster that is.
LIMITS = {"openvino": 1 / 0.8, "openvino-int8": 1 / 0.4}


def archive(folder: Path) -> list[Path]:
    """Return JPEG chips of 144 pixels at most: real ships where they are at hand, else synthetic ones."""
    real = Path(os.environ.get("LOOKDOWN_DATA", "")) / "fair1m_ships" / "chips"
    if os.environ.get("LOOKDOWN_DATA") and real.is_dir():
        return sorted(real.rglob("*.jpg"))[:CHIPS]
    make(World(kinds="ships", chips=max(10, CHIPS // 16), size=128), folder)
    return Manifest.read(folder).paths[:CHIPS]


def squares(paths: list[Path]) -> NDArray[np.uint8]:
    """Return the chips as the network takes them."""
    batches = ImageBatches(paths, bands=3, size=112, batch_size=512)
    return np.concatenate([np.asarray(batch.images) for batch in batches])


def row(made: ExportedEmbedder, folder: Path, images: NDArray[np.uint8], limit: float) -> Row:
    """Compare a gallery made from nothing with the bare network."""
    bare = Bare(made)

    def index() -> None:
        with tempfile.TemporaryDirectory() as place:
            gallery = Gallery.create(Path(place) / "gallery", made)
            _ = gallery.embedder  # compiled before the clock of a user starts as well, in a service or a long archive
            added = gallery.add(folder)
            assert added.added == len(images)

    what = f"{len(images):,} JPEG chips indexed by {made.about.name}: read, embedded, written"
    return compare(
        what, index, "bare OpenVINO on the same chips in memory", lambda: bare.run(images), limit=limit, turns=3
    )


def main() -> None:
    """Measure with all cores."""
    with tempfile.TemporaryDirectory() as place:
        paths = archive(Path(place) / "world")
        folder = Path(place) / "archive"
        folder.mkdir()
        for number, path in enumerate(paths):
            (folder / f"{number:05d}.jpg").symlink_to(path.resolve())
        images = squares(paths)
        made = exports(Embedder("tf_efficientnet_lite0").eval(), images, Path(place) / "exported")
        rows = [row(made[name], folder, images, limit) for name, limit in LIMITS.items()]
    report("Indexing", rows, threads=None)


if __name__ == "__main__":
    main()
