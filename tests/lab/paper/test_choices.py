"""Choices: made on validation alone, kept, written and read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.lab.paper.smoke import smoke

from lookdown.errors import InputError
from lookdown.lab.paper import choices
from lookdown.lab.paper.choices import GRID, Choice, choose, write_choices
from lookdown.lab.paper.experiment import BEST, EVERY, Experiment
from lookdown.lab.paper.report import Table
from lookdown.lab.paper.tasks import SHIPS, UDA_MAR, Task
from lookdown.lab.paper.trained_network import Case
from lookdown.losses import LOSSES, make_loss
from lookdown.training.recipe import Recipe


def test_no_loss_has_more_than_eight_settings_and_each_can_be_made() -> None:
    assert set(GRID) == {EVERY, *LOSSES}
    for loss, settings in GRID.items():
        assert 2 <= len(settings) <= 8
        assert len(set(settings)) == len(settings)
        for changes in settings if loss != EVERY else ():
            options = dict(
                change.removeprefix("stage2.options.").split("=") for change in changes if "options" in change
            )
            make_loss(loss, {key: float(value) if "." in value else int(value) for key, value in options.items()},
                      classes=4, dimension=8)  # fmt: skip


def test_a_choice_is_the_best_of_what_was_tried_on_validation_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "FEW", 2)
    asked: list[bool] = []
    case_of = Experiment.case_of

    def watched(self: Experiment, task: Task, recipe: Recipe, *, validation: bool = False) -> Case:
        asked.append(validation)
        return case_of(self, task, recipe, validation=validation)

    monkeypatch.setattr(Experiment, "case_of", watched)
    found = choose(smoke(), UDA_MAR, 0)
    assert all(asked), "queries and gallery of the test have no say"
    assert set(found) == {EVERY, *LOSSES}
    for loss, one in found.items():
        assert one.score == max(one.tried)
        assert one.changes[: len(GRID[loss][0])] == GRID[loss][one.tried.index(one.score)]
    assert found["identity"].changes[-1].startswith("metric.shrinkage=")
    scored = len(asked)
    assert choose(smoke(), UDA_MAR, 0) == found
    assert len(asked) == scored, "nothing is scored twice"


def test_choices_are_written_as_the_setting_reads_them(tmp_path: Path) -> None:
    chosen = {
        "CBRSOR-MAR": {
            3: {
                EVERY: Choice(("stage1.epochs=3",), 1.0, ()),
                "identity": Choice((), 1.0, ()),
                "sp": Choice((), 2.0, ()),
                "glrt": Choice(("a=1", "b=2"), 3.0, ()),
            }
        }
    }
    write_choices(chosen, tmp_path / "choices.toml")
    read = tomllib.loads((tmp_path / "choices.toml").read_text())
    changes = {EVERY: ["stage1.epochs=3"], "identity": [], "sp": [], "glrt": ["a=1", "b=2"]}
    assert read == {"CBRSOR-MAR": {"seed 3": {**changes, BEST: ["sp"]}}}, "the best of the baselines, not of all"


def test_choices_are_made_on_a_frozen_trunk_and_never_into_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="chosen at --scale head"):
        choose(Experiment("cpu", tmp_path), SHIPS, 0)
    monkeypatch.setattr(choices, "RECIPES", tmp_path / "lookdown" / "recipes")
    monkeypatch.setattr("lookdown.lab.paper.experiment.RECIPES", tmp_path / "lookdown" / "recipes")
    with pytest.raises(InputError, match="choose for your own with --data"):
        choices.make(Experiment("head", tmp_path))


def test_the_page_shows_every_setting_and_what_each_split_has_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fixed(experiment: Experiment, task: Task, seed: int) -> dict[str, Choice]:
        tried = (50.0, 60.0, 55.0, 10.0) if seed == 0 else (50.0, 40.0, 30.0, 20.0)
        return {
            "identity": Choice((*GRID["identity"][tried.index(max(tried))], "metric.shrinkage=0.1"), max(tried), tried)
        }

    monkeypatch.setattr(choices, "choose", fixed)
    page = choices.make(Experiment("smoke", tmp_path))
    table = page.parts[0]
    assert isinstance(table, Table)
    assert table.header == ("loss", "setting", "split 0", "split 1")
    assert table.rows == [
        ["identity", "learning_rate 0.001", "50.0", "**50.0**"],
        ["", "learning_rate 0.003", "**60.0**", "40.0"],
        ["", "learning_rate 0.01", "55.0", "30.0"],
        ["", "learning_rate 0.03", "10.0", "20.0"],
    ]
