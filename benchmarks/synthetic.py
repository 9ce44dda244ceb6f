"""Chips of the synthetic world a second of one core, and a whole scene; the peer is the clock."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from threadpoolctl import threadpool_limits

from lookdown.chips.synthetic.scenes import write_scene
from lookdown.chips.synthetic.sensors import NEAR
from lookdown.chips.synthetic.world import World, plan

WANTED = 100.0  # chips a second at 64 pixels


def chips_a_second(size: int, *, chips: int = 12) -> float:
    """Return how many chips of all kinds and grounds one core draws in a second of its time."""
    world = World(chips=chips, size=size)
    planned = plan(world)[0]
    planned[0].take(world)  # textures are made once
    begin = time.process_time()
    for item in planned:
        item.take(world)
    return len(planned) / (time.process_time() - begin)


def seconds_a_scene(size: int) -> float:
    """Return the seconds of one core for a port, written to disk."""
    with TemporaryDirectory() as folder:
        begin = time.process_time()
        write_scene(Path(folder), "port", NEAR, size=size)
        return time.process_time() - begin


def main() -> None:
    """Print the table; the exit code is 1 if the target was missed."""
    with threadpool_limits(1):
        rates = {size: chips_a_second(size) for size in (64, 96)}
        scene = seconds_a_scene(4096)
    print(f"Synthetic world\n{platform.machine()}, Python {platform.python_version()}, one core\n")
    print("| | | target |\n|---|---|---|")
    for size, rate in rates.items():
        target = f"at least {WANTED:g}, {'met' if rate >= WANTED else 'MISSED'}" if size == 64 else ""
        print(f"| chips of {size} pixels a second | {rate:.0f} | {target} |")
    print(f"| seconds for a scene of 4,096 x 4,096 | {scene:.0f} | |")
    sys.exit(rates[64] < WANTED)


if __name__ == "__main__":
    main()
