"""What an experiment writes: a page of Markdown with tables and pictures, and the command that made it above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Page", "PageFigure", "Table", "half_width", "percent", "span", "spread"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header; figures stand to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"| {' | '.join(row)} |" for row in (self.header, *self.rows)]
        lines.insert(1, "|---|" + "---:|" * (len(self.header) - 1))
        return "\n".join([f"**{self.title}**", "", *lines] if self.title else lines)


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure, drawn already."""

    name: str  # of its file, without an ending
    figure: Figure
    caption: str
    shows_chips: bool = False  # of a data set that may not be passed on: written among the runs, and only linked there


@dataclass(frozen=True, slots=True)
class Page:
    """All that a target of `reproduce` came to."""

    title: str
    caption: str
    parts: Sequence[Table | PageFigure | str] = field(default_factory=tuple)

    def write(self, name: str, out: Path, kept: Path, command: str) -> Path:
        """Write NAME.md and its pictures into a folder; pictures of chips go to `kept`."""
        out.mkdir(parents=True, exist_ok=True)
        text = [f"# {self.title}", f"```\n{command}\n```", self.caption]
        for part in self.parts:
            if isinstance(part, Table):
                text.append(part.markdown())
            elif isinstance(part, PageFigure):
                text.append(self._draw(part, kept if part.shows_chips else out))
            else:
                text.append(part)
        file = out / f"{name}.md"
        file.write_text("\n\n".join(text) + "\n")
        return file

    @staticmethod
    def _draw(picture: PageFigure, folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{picture.name}.png"
        picture.figure.savefig(file, dpi=110, metadata={"Software": None})
        if picture.shows_chips:
            return f"{picture.caption} The picture shows chips of the data, so it stays among the runs: `{file.name}`."
        return f"![{picture.caption}]({file.name})\n\n{picture.caption}"


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean over seeds, by Student's t; NaN for one seed."""
    if len(values) < 2:
        return float("nan")
    return float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def spread(values: Sequence[float], *, sign: bool = False) -> str:
    """Return the mean over seeds and half of its interval, as text."""
    mean = f"{np.mean(values):+.1f}" if sign else f"{np.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {half_width(values):.1f}"


def span(counts: Sequence[int]) -> str:
    """Return one number, or the least and the greatest where seeds differ."""
    return f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"


def percent(value: float | None) -> str:
    """Return a figure of the paper, or a dash where it has none."""
    return "-" if value is None else f"{value:.1f}"
