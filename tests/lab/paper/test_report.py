"""Pages: Markdown, pictures in their places, means with intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lookdown.lab.paper.report import Page, PageFigure, half_width, spread


def test_an_interval_over_seeds_is_students() -> None:
    values = [1.0, 2.0, 4.0]
    assert np.isclose(half_width(values), 4.302653 * np.std(values, ddof=1) / np.sqrt(3))
    assert np.isnan(half_width([1.0]))
    assert (spread([1.0]), spread(values), spread([1.0], sign=True)) == ("1.0", "2.3 ± 3.8", "+1.0")


def test_a_page_keeps_pictures_of_chips_among_the_runs(tmp_path: Path) -> None:
    parts: list[PageFigure | str] = [
        PageFigure("open", Figure(), "Numbers."),
        PageFigure("closed", Figure(), "Chips.", shows_chips=True),
        "A word.",
    ]
    file = Page("Title", "Caption.", parts).write("page", tmp_path / "out", tmp_path / "kept", "the command")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["open.png", "page.md"]
    assert (tmp_path / "kept" / "closed.png").is_file()
    assert file.read_text().startswith("# Title\n\n```\nthe command\n```\n\nCaption.")
