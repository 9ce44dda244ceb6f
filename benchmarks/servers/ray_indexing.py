"""Index an archive of JPEG chips by Ray nodes on this machine: two nodes against one, and against one process.

A node has one CPU, which reads, embeds and writes. The nodes share this machine, so two take half the time of one only
if two cores are free. Run it in a checkout, since the nodes are those of the tests:
PYTHONPATH=.:benchmarks python benchmarks/servers/ray_indexing.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.gallery.scale.ray_nodes import RayNodes  # first: it sets what Ray reads at its import

from embedding import exports
from indexing import archive, gathered, squares
from lookdown import Embedder, Gallery
from lookdown.gallery.scale.ray_cluster import ray_cluster
from lookdown.networks import ExportedEmbedder
from sidebyside import Row, compare, report


def index(embedder: ExportedEmbedder, folder: Path, address: str | None) -> int:
    """Create a gallery of all images, and return how many it has."""
    with tempfile.TemporaryDirectory() as parent:
        gallery = Gallery.create(Path(parent) / "gallery", embedder)
        return gallery.add(folder, workers=address).added


def compare_nodes(embedder: ExportedEmbedder, folder: Path, chips: int) -> list[Row]:
    """Time one node and two, with their processes and networks started before."""
    rows = []
    with RayNodes(1) as one, ray_cluster(one.address):

        def by_one() -> None:
            assert index(embedder, folder, one.address) == chips

        def alone() -> None:
            assert index(embedder, folder, None) == chips

        rows.append(
            compare(f"{chips:,} JPEG chips by one Ray node", by_one, "one process, all cores", alone, limit=3, turns=3)
        )
        seconds = rows[0].ours
    with RayNodes(2) as two, ray_cluster(two.address):

        def by_two() -> None:
            assert index(embedder, folder, two.address) == chips

        rows.append(
            compare(
                f"{chips:,} JPEG chips by two Ray nodes", by_two, "one process, all cores", alone, limit=1.5, turns=3
            )
        )
    both = rows[1].ours
    rows.append(Row.of("the same chips by two nodes", "by one node", both, seconds, limit=0.65))
    return rows


def main() -> None:
    """Measure with the OpenVINO export, on chips of at most 144 pixels."""
    with tempfile.TemporaryDirectory() as parent:
        paths = archive(Path(parent) / "world")
        folder = gathered(paths, Path(parent) / "archive")
        network = Embedder("tf_efficientnet_lite0").eval()
        embedder = exports(network, squares(paths), Path(parent) / "exported")["openvino"]
        rows = compare_nodes(embedder, folder, len(paths))
    report("Indexing by Ray nodes on one machine, which share its cores", rows, threads=None)


if __name__ == "__main__":
    main()
