"""The chart shows every row, to the right of 1 where ours is better."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookdown.lab.bench.row import Row

pytest.importorskip("matplotlib")

from matplotlib.patches import Rectangle

from lookdown.lab.bench.chart import draw

ROWS = [
    Row.of("fast", "a peer", 1, 8, limit=0.5),
    Row.of("slow", "a limit", 3, 2, limit=1),
    Row.of("many", "few", 6, 2, limit=2, unit="a second", better="higher"),
    Row.of("nothing", "all", 0, 1, limit=0.1),
]


def test_every_row_has_a_bar_a_target_and_its_figure(tmp_path: Path) -> None:
    drawn = draw(ROWS)
    (axes,) = drawn.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [f"{row.what}\nagainst {row.peer}" for row in ROWS]
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert ends[:3] == pytest.approx([8, 2 / 3, 3])
    assert ends[3] > 1000  # nothing at all is infinitely better, and still drawn
    assert [text.get_text() for text in axes.texts] == ["8", "0.667", "3", "inf"]
    strokes = [line.get_xdata()[0] for line in axes.lines[: len(ROWS)]]  # type: ignore[index]
    assert strokes == pytest.approx([2, 1, 2, 10])
    assert axes.get_xscale() == "log"
    drawn.savefig(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_a_missed_target_has_another_colour_unless_it_is_not_judged() -> None:
    colours = [bar.get_facecolor() for bar in draw(ROWS).axes[0].patches]
    assert len({colours[0], colours[2], colours[3]}) == 1
    assert colours[1] != colours[0]
    assert len({bar.get_facecolor() for bar in draw(ROWS, judged=False).axes[0].patches}) == 1


def test_a_row_without_a_target_has_no_stroke() -> None:
    (axes,) = draw([Row.of("ours", "peer", 1, 2, limit=None)]).axes
    assert len(axes.patches) == 1
    assert [line.get_xdata()[0] for line in axes.lines] == [1]  # type: ignore[index]  # the axis itself
