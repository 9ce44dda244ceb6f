"""Small worlds and quick recipes for the tests of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.templates import template

from lookdown.config import build
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.training.recipe import Recipe

__all__ = ["recipe", "world"]


def world() -> Path:
    """Return a folder of 16 kinds of ship, 12 small chips each; nobody writes to it."""
    return template("world", lambda folder: draw_world(World(kinds="ships", chips=12, size=32), folder))


def recipe(**changes: Any) -> Recipe:
    """Return a recipe that trains in seconds; tables are changed key by key."""
    values: dict[str, Any] = {
        "data": {"manifest": str(world()), "held_out": 0.3},
        "network": {"backbone": "mobilenetv2_035", "weights": "none", "size": 32, "dimension": 8},
        "views": 1,
        "batches": {"classes": 8, "samples": 2},
        "stage1": {"epochs": 2},
        "stage2": {"epochs": 2},
        "device": "cpu",
    }
    for key, change in changes.items():
        values[key] = {**values.get(key, {}), **change} if isinstance(change, dict) else change
    return build(Recipe, values)
