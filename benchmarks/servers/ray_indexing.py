"""An archive of JPEG chips into a gallery by Ray nodes on this machine: two against one, and against the process alone.

A node has one processor, which a chip is read, embedded and written by; the nodes share what this machine has, so that
two are to take half the time of one only where two cores are free. In a checkout, since the nodes are those of the
tests: PYTHONPATH=.:benchmarks python benchmarks/servers/ray_indexing.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.gallery.scale.ray_nodes import RayNodes  # first: it says how Ray is to be imported

from embedding import exports
from indexing import archive, gathered, squares
from lookdown import Embedder, Gallery
from lookdown.gallery.scale.ray_cluster import ray_cluster
from lookdown.networks import ExportedEmbedder
from sidebyside import Row, compare, report


def index(made: ExportedEmbedder, folder: Path, address: str | None) -> int:
    """Make a gallery of all images, and return how many it has."""
    with tempfile.TemporaryDirectory() as place:
        gallery = Gallery.create(Path(place) / "gallery", made)
        return gallery.add(folder, workers=address).added


def compared(made: ExportedEmbedder, folder: Path, chips: int) -> list[Row]:
    """Time one node and two, each with its processes and networks started before the clock."""
    rows = []
    with RayNodes(1) as one, ray_cluster(one.address):

        def by_one() -> None:
            assert index(made, folder, one.address) == chips

        def alone() -> None:
            assert index(made, folder, None) == chips

        rows.append(
            compare(f"{chips:,} JPEG chips by one Ray node", by_one, "one process, all cores", alone, limit=3, turns=3)
        )
        seconds = rows[0].ours
    with RayNodes(2) as two, ray_cluster(two.address):

        def by_two() -> None:
            assert index(made, folder, two.address) == chips

        rows.append(
            compare(
                f"{chips:,} JPEG chips by two Ray nodes", by_two, "one process, all cores", alone, limit=1.5, turns=3
            )
        )
    both = rows[1].ours
    rows.append(Row.of("the same chips by two nodes", "by one node", both, seconds, limit=0.65))
    return rows


def main() -> None:
    """Measure with the export that is used, on chips of 144 pixels at most."""
    with tempfile.TemporaryDirectory() as place:
        paths = archive(Path(place) / "world")
        folder = gathered(paths, Path(place) / "archive")
        network = Embedder("tf_efficientnet_lite0").eval()
        made = exports(network, squares(paths), Path(place) / "exported")["openvino"]
        rows = compared(made, folder, len(paths))
    report("Indexing by Ray nodes on one machine, which share its cores", rows, threads=None)


if __name__ == "__main__":
    main()
