"""What stage 2 with running statistics costs beside stage 1, and how long training waits for data."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from lookdown.config import build
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.training.recipe import Recipe
from lookdown.training.train import train
from sidebyside import QUICK, Row, report

DEARER = 1.05  # a stage-2 epoch over a stage-1 epoch, at most
WAITING = 0.10  # share of an epoch
TURNS = 1 if QUICK else 5


def recipe(world: Path, **changes: Any) -> Recipe:
    """Return the recipe of MAR20, for three epochs: stage 1, stage 2 with its first pass, and stage 2 as it goes on."""
    values: dict[str, Any] = {
        "data": {"manifest": str(world)},
        "trunk": "finetune",
        "device": "cpu",
        "network": {"head": "linear"},
        "augmentation": {"rotation": 180.0, "blur": 0.0, "noise": 0.0},
        "stage1": {"epochs": 1, "learning_rate": 0.02},
        "stage2": {"epochs": 2, "learning_rate": 0.005, "statistics": "running"},
    }
    return build(Recipe, values | changes)


def turn(recipe: Recipe) -> list[dict[str, Any]]:
    """Train, and return the records of the three epochs."""
    with tempfile.TemporaryDirectory() as folder:
        return train(recipe, Path(folder) / "run").history()


def main() -> None:
    """Train on all cores; a frozen trunk is shown, and has no target."""
    with tempfile.TemporaryDirectory() as folder:
        draw_world(World(kinds="ships", chips=10 if QUICK else 40), Path(folder))
        runs = {
            "fine-tuned": [turn(recipe(Path(folder))) for _ in range(TURNS)],
            "frozen trunk": [turn(recipe(Path(folder), trunk="frozen")) for _ in range(TURNS + 1)][1:],
        }
    print("| | stage 1, s an epoch | stage 2, s | stage 2 / stage 1 | waiting for data |\n|---|---|---|---|---|")
    rows: list[Row] = []
    for name, turns in runs.items():
        first, second = ([records[epoch]["seconds"] for records in turns] for epoch in (0, 2))
        ratio = statistics.median(b / a for a, b in zip(first, second, strict=True))
        waiting = statistics.median(record["waited"] / record["seconds"] for records in turns for record in records)
        one, two = statistics.median(first), statistics.median(second)
        print(f"| {name} | {one:.2f} | {two:.2f} | {ratio:.3f} | {waiting:.1%} |")
        if name == "fine-tuned":
            rows = [
                Row("an epoch of stage 2, running statistics", "an epoch of stage 1", two, one, ratio, DEARER),
                Row.of("waiting for data", "the whole epoch", waiting, 1, limit=WAITING, unit="epochs"),
            ]
    print()
    report("Training, fine-tuned", rows, threads=None)


if __name__ == "__main__":
    main()
