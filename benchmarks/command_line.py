"""How long one waits for the command line: its help, and a first result from a small gallery."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lookdown.chips.manifest import Manifest
from lookdown.gallery.index.creation import gallery_of_pretrained
from lookdown.gallery.index.sources import Cutting
from lookdown.lab.synthetic.world import World, draw_world
from sidebyside import QUICK, Row, report

HELP, SEARCH = 0.3, 2.5  # seconds, at most
TURNS = 1 if QUICK else 11
CHIPS = 10 if QUICK else 40  # of each kind of ship
LOOKDOWN = ("-m", "lookdown")


def seconds(*arguments: str) -> float:
    """Return what a new process of Python takes from its start to its end."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - begin


def waiting(*arguments: str) -> tuple[float, float]:
    """Return the medians of a command and of a process that does nothing, in turns; files are in the page cache."""
    seconds(*arguments)
    turns = [(seconds(*arguments), seconds("-c", "pass")) for _ in range(TURNS)]
    ours, nothing = (statistics.median(column) for column in zip(*turns, strict=True))
    return ours, nothing


def small_gallery(folder: Path) -> tuple[str, str]:
    """Make a gallery of ships for a pretrained network, with its exported runtime; return it and an image."""
    draw_world(World(kinds="ships", chips=CHIPS), folder / "world")
    chips = Manifest.read(folder / "world")
    gallery = gallery_of_pretrained(folder / "gallery", "tf_efficientnet_lite0", [chips], Cutting())
    gallery.add(chips.with_role("gallery"))
    print(f"a gallery of {len(gallery):,} chips, searched by OpenVINO\n")
    export = [sys.executable, *LOOKDOWN, "export", str(folder / "gallery"), "--runtime", "openvino"]
    subprocess.run(export, check=True, capture_output=True)
    return str(folder / "gallery"), str(chips.with_role("query").paths[0])


def main() -> None:
    """Measure whole processes, as a shell starts them."""
    help_seconds, nothing = waiting(*LOOKDOWN, "--help")
    print(f"| | s |\n|---|---|\n| python -c pass | {nothing:.3f} |\n| lookdown --help | {help_seconds:.3f} |\n")
    with tempfile.TemporaryDirectory() as folder:
        gallery, image = small_gallery(Path(folder))
        search_seconds, _ = waiting(*LOOKDOWN, "search", gallery, image)
    rows = [
        Row.of("lookdown --help", f"a limit of {HELP:g} s", help_seconds, HELP, limit=1),
        Row.of("lookdown --help", "python -c pass", help_seconds, nothing, limit=20),
        Row.of("lookdown search, small gallery", f"a limit of {SEARCH:g} s", search_seconds, SEARCH, limit=1),
    ]
    report("Waiting for the command line", rows, threads=None)


if __name__ == "__main__":
    main()
