"""A world of our own: ships and aircraft from above, with their ground, their light and the sensor that sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["small_world"]


def small_world(folder: str | Path, **settings: Any) -> Path:
    """Draw a small world of ships for an example, and return its folder; a finished one is not drawn again.

    The folder has `chips/` (images), `manifest.parquet` (their labels and locations) and, where scenes are asked for,
    `scenes/` (GeoTIFFs, and their boxes as GeoJSON).

    folder: where to draw it.
    settings: fields of `lookdown.lab.synthetic.world.World` that differ: `kinds`, `chips` (of each kind), `shift` (of
        the sensor, 0 to 1), `scenes`, `seed`.

        images = small_world("world") / "chips"
    """
    from lookdown.lab.synthetic.world import World, draw_world  # heavy: only when a world is drawn

    chosen: dict[str, Any] = {"kinds": "ships", "chips": 12, "size": 48, **settings}
    draw_world(World(**chosen), Path(folder))
    return Path(folder)
