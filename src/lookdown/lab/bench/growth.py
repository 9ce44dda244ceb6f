"""Cost against N: the exponent of each decade, a table, and a picture with both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lookdown.lab.bench.row import Row, figure
from lookdown.lab.paper.report import Page, PageFigure, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curve", "draw", "growth_page"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "os^DvP"


@dataclass(frozen=True, slots=True)
class Curve:
    """What one kind of work takes for N rows."""

    name: str
    what: str  # the work, and what N counts
    why: str  # where it is not linear, and the reason in the code
    sizes: Sequence[int]  # rising, with every decade's ends among them
    seconds: Sequence[float]

    def exponents(self) -> list[tuple[int, int, float]]:
        """Return for each decade its ends, and p where seconds go as N to the power p, by least squares."""
        sizes, seconds = np.array(self.sizes), np.array(self.seconds)
        ends = [size for size in self.sizes if np.log10(size) % 1 == 0]
        exponents = []
        for low, high in pairwise(ends):
            inside = (sizes >= low) & (sizes <= high)
            exponents.append((low, high, float(np.polyfit(np.log(sizes[inside]), np.log(seconds[inside]), 1)[0])))
        return exponents

    def last_decade(self, *, limit: float) -> Row:
        """Compare what a row costs at the end of the last decade with what it costs at its beginning."""
        low, high, _ = self.exponents()[-1]
        each = dict(zip(self.sizes, self.seconds, strict=True))
        what, peer = f"{self.name}, a row of {high:,}", f"a row of {low:,}"
        return Row.of(what, peer, each[high] / high * 1e6, each[low] / low * 1e6, limit=limit, unit="µs")


def growth_page(curves: Sequence[Curve], measured_on: str) -> Page:
    """Return the page of some curves: the picture, exponents with their reasons, and seconds."""
    caption = (
        "Seconds against the number of rows N over three decades, one thread. The exponent of a decade is p where "
        f"seconds go as N to the power p: 1 is linear, 0 does not depend on N. {measured_on}"
    )
    picture = PageFigure("growth", draw(curves), "Seconds against N; thin grey lines are linear.")
    return Page("Cost against N", caption, (picture, _exponents(curves), *_reasons(curves), _seconds(curves)))


def draw(curves: Sequence[Curve]) -> Figure:
    """Return a picture with both axes logarithmic, and lines of linear growth behind the curves."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7.5, 5.5), layout="constrained")
    axes = drawn.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for index, curve in enumerate(curves):
        colour, marker = _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]
        axes.plot(curve.sizes, curve.seconds, color=colour, marker=marker, linewidth=1.4, label=curve.name)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for power in np.arange(np.floor(np.log10(low / right)), np.ceil(np.log10(high / left)) + 1):
        axes.plot([left, right], [left * 10**power, right * 10**power], color="0.9", linewidth=0.8, zorder=0)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.set_xlabel("rows N")
    axes.set_ylabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    drawn.legend(loc="outside lower center", ncols=3, frameon=False)
    return drawn


def _exponents(curves: Sequence[Curve]) -> Table:
    decades = sorted({(low, high) for curve in curves for low, high, _ in curve.exponents()})
    rows = []
    for curve in curves:
        exponents = {(low, high): f"{power:.2f}" for low, high, power in curve.exponents()}
        rows.append([curve.name, *(exponents.get(decade, "") for decade in decades)])
    return Table(["exponent", *(f"{low:,} to {high:,}" for low, high in decades)], rows)


def _reasons(curves: Sequence[Curve]) -> list[str]:
    return [f"**{curve.name.capitalize()}** ({curve.what}). {curve.why}" for curve in curves]


def _seconds(curves: Sequence[Curve]) -> Table:
    sizes = sorted({size for curve in curves for size in curve.sizes})
    rows = []
    for size in sizes:
        seconds = [dict(zip(curve.sizes, curve.seconds, strict=True)).get(size) for curve in curves]
        rows.append([f"{size:,}", *("" if value is None else figure(value) for value in seconds)])
    return Table(["N", *(f"{curve.name}, s" for curve in curves)], rows)
