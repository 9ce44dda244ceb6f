"""How much of the time of indexing is spent outside the network: reading, letterboxing, thumbnails, the table."""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lookdown import Embedder, Gallery
from lookdown.chips.manifest import Manifest
from lookdown.chips.synthetic.world import World, make

OUTSIDE = 0.25  # share of the time, at most
TURNS = 5
SIDES = (64, 128)  # of the chips, in pixels


class Stopwatch:
    """Adds up the time of a network's forward passes."""

    def __init__(self, embedder: Embedder) -> None:
        self.seconds = self._begin = 0.0
        embedder.trunk.register_forward_pre_hook(self._start)
        embedder.trunk.register_forward_hook(self._stop)

    def _start(self, *_: Any) -> None:
        self._begin = time.perf_counter()

    def _stop(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self._begin


def turn(world: Path, embedder: Embedder) -> tuple[float, float]:
    """Index a world anew; return the chips a second, and the share of the time outside the forward pass."""
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery.create(Path(folder) / "gallery", embedder)
        assert gallery.embedder is not None
        watch = Stopwatch(gallery.embedder)
        begin = time.perf_counter()
        added = gallery.add(Manifest.read(world), every_role=True)
        seconds = time.perf_counter() - begin
    return added.added / seconds, 1 - watch.seconds / seconds


def main() -> None:
    """Print the table; the exit code is 1 if the target was missed."""
    print(f"Indexing\n{platform.machine()}, Python {platform.python_version()}, all cores\n")
    print("| chips | chips a second | outside the forward pass | target | |\n|---|---|---|---|---|")
    met = True
    for side in SIDES:
        with tempfile.TemporaryDirectory() as folder:
            make(World(kinds="ships", chips=64, size=side), Path(folder))
            embedder = Embedder.pretrained("tf_efficientnet_lite0", Manifest.read(folder).paths[:300])
            turns = [turn(Path(folder), embedder) for _ in range(TURNS + 1)][1:]  # the first warms up
        speed, outside = (statistics.median(column) for column in zip(*turns, strict=True))
        met &= outside <= OUTSIDE
        verdict = "met" if outside <= OUTSIDE else "MISSED"
        print(f"| {side} px JPEG | {speed:.0f} | {outside:.1%} | at most {OUTSIDE:.0%} | {verdict} |")
    sys.exit(not met)


if __name__ == "__main__":
    main()
