"""Every target of `lookdown reproduce`, in small: each page is written, with the command above it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from tests.lab.paper.smoke import smoke

from lookdown.errors import InputError
from lookdown.lab.paper.experiment import Experiment, Scale
from lookdown.lab.paper.report import Page, PageFigure
from lookdown.lab.paper.reproduce import TARGETS, reproduce


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_writes_a_page_with_its_command(name: str, tmp_path: Path) -> None:
    written: list[Path] = []
    reproduce([name], smoke(), tmp_path, written.append)
    text = written[0].read_text()
    assert written == [tmp_path / f"{name}.md"]
    assert f"lookdown reproduce {name} --scale smoke" in text
    assert "|---|" in text
    assert "nan" not in text.lower()
    for picture in re.findall(r"\]\((\w+\.png)\)", text):
        assert (tmp_path / picture).stat().st_size > 5_000


def test_pages_of_larger_networks_have_a_folder_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(experiment: Experiment) -> Page:
        return Page("Study", "of a scale", [PageFigure("dots", Figure(), "Dots.")])

    monkeypatch.setitem(TARGETS, "study", page)
    written: list[Path] = []
    scales: tuple[Scale, ...] = "head", "cpu", "paper"
    for scale in scales:
        reproduce(["study"], Experiment(scale, tmp_path / "runs"), tmp_path, written.append)
    folders = tmp_path, tmp_path / "cpu", tmp_path / "paper"
    assert written == [folder / "study.md" for folder in folders]
    assert all((folder / "dots.png").is_file() for folder in folders), "no picture is overwritten"


def test_all_are_the_papers_tables_and_figures() -> None:
    wanted = [f"table{number}" for number in range(1, 13)] + [f"figure{number}" for number in (1, 4, 5, 6)]
    assert list(TARGETS)[:16] == wanted


def test_an_unknown_target_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no target 'table13'; did you mean table3"):
        reproduce(["table1", "table13"], smoke(), tmp_path, lambda file: None)
    assert not list(tmp_path.iterdir()), "nothing is trained before all names are known"
