"""Does it matter how an example lies? Overlap of the first hits for an image and its quarter turns."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from lookdown import Embedder, Gallery
from lookdown.chips.manifest import Manifest
from lookdown.chips.pixels import read_chip
from lookdown.lab.synthetic.world import World, draw_world
from sidebyside import OPTIONS, QUICK, Row, report

TARGET = 0.7


def overlaps(gallery: Gallery, queries: list[Path], k: int, *, turned: bool) -> list[float]:
    """Return for each turn of each query which share of its first hits are those of the query as it lies."""
    shares = []
    for query in queries:
        pixels = read_chip(query)
        turns = [np.ascontiguousarray(np.rot90(pixels, turn)) for turn in range(4)]
        first, *others = ({hit.id for hit in gallery.search(turn, k, turned=turned).hits} for turn in turns)
        shares += [len(first & other) / k for other in others]
    return shares


def main() -> None:
    """Draw ships, search them by a pretrained network, print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, parents=[OPTIONS])
    arguments.add_argument("--chips", type=int, default=16 if QUICK else 60, help="of each kind of ship")
    arguments.add_argument("--queries", type=int, default=4 if QUICK else 40)
    arguments.add_argument("-k", type=int, default=20)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        draw_world(World(kinds="ships", chips=options.chips, size=96), Path(folder, "world"))
        chips = Manifest.read(Path(folder, "world"))
        gallery = Gallery.create(Path(folder, "gallery"), Embedder.pretrained(images=chips.with_role("train").paths))
        gallery.add(chips.with_role("gallery"))
        asked = chips.with_role("query").paths
        queries = asked[:: max(1, len(asked) // options.queries)][: options.queries]
        print(f"{len(queries)} queries, {len(gallery):,} chips, first {options.k} hits\n")
        print("| example | overlap with its turns, mean | least |\n|---|---|---|")
        means = {}
        for turned, description in ((True, "seen in four turns"), (False, "as it lies")):
            shares = overlaps(gallery, queries, options.k, turned=turned)
            means[turned] = float(np.mean(shares))
            print(f"| {description} | {means[turned]:.2f} | {min(shares):.2f} |")
    print()
    what = f"first {options.k} hits of an example that is turned, seen in four turns"
    row = Row.of(what, "those of it as it lies", means[True], 1, limit=TARGET, unit="shared", better="higher")
    report("Examples that are turned", [row], threads=None)


if __name__ == "__main__":
    main()
