"""Chips of the synthetic world a second of one core, and a whole scene; the peer is the clock."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from threadpoolctl import threadpool_limits

from lookdown.lab.synthetic.scenes import write_scene
from lookdown.lab.synthetic.sensors import NEAR
from lookdown.lab.synthetic.world import World, plan_world
from sidebyside import QUICK, Row, report

WANTED = 100.0  # chips a second at 64 pixels
SCENE = 512 if QUICK else 4096  # pixels a side


def chips_a_second(size: int, *, chips: int = 12) -> float:
    """Return how many chips of all kinds and grounds one core draws in a second of its time."""
    world = World(chips=chips, size=size)
    planned = plan_world(world)[0]
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
    """Measure on one core."""
    with threadpool_limits(1):
        rates = {size: chips_a_second(size) for size in (64, 96)}
        scene = seconds_a_scene(SCENE)
    print(f"chips of 96 pixels a second: {rates[96]:.0f}")
    print(f"seconds for a scene of {SCENE:,} x {SCENE:,}: {scene:.1f}\n")
    what, limit = "chips of 64 pixels drawn, of one core's time", f"a limit of {WANTED:g} a second"
    row = Row.of(what, limit, rates[64], WANTED, limit=1, unit="a second", better="higher")
    report("The synthetic world", [row])


if __name__ == "__main__":
    main()
