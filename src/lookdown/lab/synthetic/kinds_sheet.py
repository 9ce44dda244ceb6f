"""Every kind of object and every ground, under each of two sensors, on one sheet."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from lookdown.lab.synthetic.grounds import GROUNDS
from lookdown.lab.synthetic.kinds import KINDS
from lookdown.lab.synthetic.locations import sample_locations
from lookdown.lab.synthetic.picture import take
from lookdown.lab.synthetic.sensors import FAR, NEAR

__all__ = ["contact_sheet"]

_TITLE = 16  # pixels above each pair
_GAP = 6


def contact_sheet(*, side: int = 120, columns: int = 5, seed: int = 0) -> Image.Image:
    """Return the sheet: the same object twice, left under the near sensor and right under the far one."""
    locations = sample_locations(5 * len(GROUNDS), seed)
    entries = [(name, kind) for name, kind in KINDS.items()] + [(f"({ground})", None) for ground in GROUNDS]
    rows = -(-len(entries) // columns)
    width, height = 2 * side + _GAP, side + _TITLE + _GAP
    sheet = Image.new("RGB", (columns * width + _GAP, rows * height + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (title, kind) in enumerate(entries):
        able = [
            location for location in locations if location.ground in (kind.grounds if kind else (title.strip("()"),))
        ]
        location = able[number % len(able)]
        left, top = _GAP + number % columns * width, _GAP + number // columns * height
        draw.text((left, top), title, fill="black")
        for index, sensor in enumerate((NEAR, FAR)):
            picture = take(
                kind, location, sensor, side, np.random.default_rng([seed, number]), at=(500.0 * number, 0.0)
            )
            sheet.paste(Image.fromarray(picture.pixels), (left + index * side, top + _TITLE))
    return sheet
