"""A bar for each row: how many times as good as the peer, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lookdown.lab.bench.row import Row, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_MET, _MISSED = "#0072B2", "#D55E00"
_FARTHEST = 1e4  # bars end here: what takes nothing at all has no place on a logarithmic axis


def draw(rows: Sequence[Row], *, judged: bool = True) -> Figure:
    """Return bars from 1, to the right where ours is better; a stroke is the target."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    drawn = Figure(figsize=(9.5, 1.2 + 0.36 * max(1, len(rows))), layout="constrained")
    axes = drawn.add_subplot()
    for position, row in enumerate(rows):
        _bar(axes, position, row, _MET if row.met or not judged else _MISSED)
    axes.axvline(1, color="0.3", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.12, y=0.01)
    axes.set_yticks(range(len(rows)), [f"{row.what}\nagainst {row.peer}" for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("times as good as the peer or the limit; a stroke is the target", loc="right")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return drawn


def _bar(axes: Axes, position: int, row: Row, colour: str) -> None:
    times = _on_the_axis(row.times)
    axes.barh(position, times - 1, left=1, height=0.5, color=colour)
    if row.wanted is not None:
        axes.plot([_on_the_axis(row.wanted)] * 2, [position - 0.4, position + 0.4], color="black", linewidth=1.6)
    axes.annotate(
        figure(row.times),
        (times, position),
        xytext=(4 if times >= 1 else -4, 0),
        textcoords="offset points",
        ha="left" if times >= 1 else "right",
        va="center",
        fontsize=7,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )


def _on_the_axis(times: float) -> float:
    return min(max(times, 1 / _FARTHEST), _FARTHEST)
