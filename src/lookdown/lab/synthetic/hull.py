"""The hull of a ship, and the colours it is painted in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookdown.lab.synthetic.parts import Colour, Points

__all__ = ["Hull", "Paint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hull:
    """The outline of the deck and its height above the water."""

    length: float
    beam: float
    freeboard: float = 9.0
    bow: float = 0.16  # share of the length that narrows to the front
    bluntness: float = 2.2  # 1: a wedge; 3: a barge
    stern: float = 0.75  # width of the transom, as a share of the beam

    def half_width(self, x: float | Points) -> Points:
        """Return half the width at `x` metres before the middle."""
        along = np.asarray(x) / self.length
        front = np.clip((along - 0.5 + self.bow) / self.bow, 0, 1)
        back = np.clip((-along - 0.5 + 0.2) / 0.2, 0, 1)
        return self.beam / 2 * (1 - front**self.bluntness) * (1 - (1 - self.stern) * back**2)

    def outline(self, inset: float = 0.0) -> Points:
        """Return the corners of the deck, `inset` metres in from the rail."""
        xs = self.length * np.array(
            [-0.5, -0.45, -0.4, -0.3, 0.5 - self.bow, *(0.5 - self.bow * np.linspace(0.9, 0, 9))]
        )
        ys = np.maximum(self.half_width(xs) - inset, 0)
        xs = np.clip(xs, -self.length / 2 + inset, self.length / 2 - inset)
        return np.concatenate([np.stack([xs, -ys], axis=1), np.stack([xs, ys], axis=1)[::-1]])

    def at(self, share: float) -> float:
        """Return the position along the length: -0.5 is the stern, 0.5 the bow."""
        return share * self.length


@dataclass(frozen=True, slots=True)
class Paint:
    """The colours of one ship."""

    hull: Colour
    deck: Colour
    house: Colour
    accent: Colour
    boxes: tuple[Colour, ...]
