"""Every target of `lookdown reproduce`, in small: each page is written, and its figures follow from the networks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.experiments.smoke import smoke
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import InputError
from lookdown.evaluation import evaluate
from lookdown.experiments import choosing, comparison, study
from lookdown.experiments.ablation import ROWS
from lookdown.experiments.choosing import GRID, Choice, choose, write_choices
from lookdown.experiments.paper_values import ABLATION, CLUSTERS, COMPARISON
from lookdown.experiments.report import Page, Table, half_width, spread
from lookdown.experiments.reproduce import TARGETS, reproduce
from lookdown.experiments.rules import COSINE, RULES
from lookdown.experiments.setting import EVERY, Setting
from lookdown.experiments.tasks import SHIPS, TASKS, UDA_MAR, Task
from lookdown.experiments.trained import Case
from lookdown.losses import LOSSES, make_loss
from lookdown.metrics import Cosine
from lookdown.training.recipe import Recipe


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


def test_all_are_the_papers_tables_and_figures() -> None:
    wanted = [f"table{number}" for number in range(1, 13)] + [f"figure{number}" for number in (1, 4, 5, 6)]
    assert list(TARGETS)[:16] == wanted


def test_an_unknown_target_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no target 'table13'; known are table1, table2"):
        reproduce(["table1", "table13"], smoke(), tmp_path, lambda file: None)
    assert not list(tmp_path.iterdir()), "nothing is trained before all names are known"


def test_the_command_line_writes_where_it_is_told(tmp_path: Path) -> None:
    runs = str(smoke().runs)
    done = CliRunner().invoke(
        app, ["reproduce", "table1", "--scale", "smoke", "--runs", runs, "-o", str(tmp_path), "--seeds", "1"]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "table1.md").is_file()
    assert "table1.md" in done.output


def test_ablation_rows_are_those_evaluations(tmp_path: Path) -> None:
    page = TARGETS["table3"](smoke())
    table = page.parts[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [name for name, _, _ in ROWS]
    cases = [smoke().case(TASKS[2], "glrt", seed) for seed in smoke().each_seed]
    cosine = [case.mean_average_precision(Cosine().fit(case.target)) for case in cases]
    ratio = [case.mean_average_precision(case.source) for case in cases]
    assert (table.rows[2][1], table.rows[3][1]) == (spread(cosine), spread(ratio))
    theirs = [row[4] for row in table.rows]
    assert theirs == ["51.2", "-", "48.9", "44.9", "53.3", "-"], "the paper's first row here is the identity loss"


def test_figures_of_the_paper_are_whole() -> None:
    assert set(ABLATION) == {1, 2, 3, 4, 6, 7}
    assert all(len(values) == 7 for values in CLUSTERS.values())
    for table in COMPARISON.values():
        assert list(table)[:10] == list(comparison.BASELINES)
    assert {*comparison.BASELINES, "unified", "glrt"} == set(LOSSES)


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
    monkeypatch.setattr(choosing, "FEW", 2)
    asked: list[bool] = []
    case_of = Setting.case_of

    def watched(self: Setting, task: Task, recipe: Recipe, *, validation: bool = False) -> Case:
        asked.append(validation)
        return case_of(self, task, recipe, validation=validation)

    monkeypatch.setattr(Setting, "case_of", watched)
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
        "CBRSOR-MAR": {3: {EVERY: Choice(("stage1.epochs=3",), 1.0, ()), "glrt": Choice(("a=1", "b=2"), 1.0, ())}}
    }
    write_choices(chosen, tmp_path / "choices.toml")
    read = tomllib.loads((tmp_path / "choices.toml").read_text())
    assert read == {"CBRSOR-MAR": {"seed 3": {EVERY: ["stage1.epochs=3"], "glrt": ["a=1", "b=2"]}}}


def test_choices_are_made_on_a_frozen_trunk_and_never_into_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="chosen at --scale head"):
        choose(Setting("cpu", tmp_path), SHIPS, 0)
    monkeypatch.setattr(choosing, "RECIPES", tmp_path / "lookdown" / "recipes")
    monkeypatch.setattr("lookdown.experiments.setting.RECIPES", tmp_path / "lookdown" / "recipes")
    with pytest.raises(InputError, match="choose for your own with --data"):
        choosing.make(Setting("head", tmp_path))


def test_the_study_compares_with_the_best_baseline_and_says_by_how_much() -> None:
    found = study.run(smoke(), SHIPS)
    assert set(found.scores) == set(LOSSES)
    means = {loss: np.mean([one.mean_average_precision for one in ways[COSINE]]) for loss, ways in found.scores.items()}
    assert means[found.by_test] == max(means[loss] for loss in comparison.BASELINES)
    assert set(found.by_validation) <= set(comparison.BASELINES)
    assert len(found.by_validation) == len(smoke().each_seed)
    assert set(RULES) <= set(found.scores["glrt"])


def test_differences_are_paired_and_groups_are_drawn_once_for_all_seeds() -> None:
    rng = np.random.default_rng(0)
    groups = [[f"g{i % 12}" for i in range(40)], [f"g{i % 15}" for i in range(30)]]
    labels = [["a"] * 40, ["a"] * 30]
    pairs = []
    for seed in (0, 1):
        both = rng.normal(size=(2, len(groups[seed]), 20))
        relevant = ["a"] * 5 + ["b"] * 15
        pairs.append([evaluate(one, None, labels[seed], None, relevant, groups=groups[seed]) for one in both])
    ours, theirs = zip(*pairs, strict=True)
    each, whole = study.difference(ours, theirs)
    wanted = [100 * (a.mean_average_precision - b.mean_average_precision) for a, b in pairs]
    assert np.allclose(each, wanted)
    assert np.isclose(float(whole), np.mean(wanted))
    replicates = []
    for _ in range(2000):
        drawn = rng.integers(15, size=15)
        gains = []
        for seed, (a, b) in enumerate(pairs):
            rows = [i for group in drawn for i, name in enumerate(groups[seed]) if name == f"g{group}"]
            gains.append(100 * np.mean((a.queries.average_precision - b.queries.average_precision)[rows]))
        replicates.append(np.mean(gains))
    assert np.allclose([whole.low, whole.high], np.quantile(replicates, [0.025, 0.975]), atol=0.35)
    assert whole.supported
    alone, same = study.difference(ours, ours)
    assert (alone, float(same)) == ([0.0, 0.0], 0.0)


def test_an_interval_over_seeds_is_students() -> None:
    values = [1.0, 2.0, 4.0]
    assert np.isclose(half_width(values), 4.302653 * np.std(values, ddof=1) / np.sqrt(3))
    assert np.isnan(half_width([1.0]))
    assert (spread([1.0]), spread(values), spread([1.0], sign=True)) == ("1.0", "2.3 ± 3.8", "+1.0")


def test_a_page_keeps_pictures_of_chips_among_the_runs(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    from lookdown.experiments.report import Picture

    parts: list[Picture | str] = [
        Picture("open", Figure(), "Numbers."),
        Picture("closed", Figure(), "Chips.", shows_chips=True),
        "A word.",
    ]
    file = Page("Title", "Caption.", parts).write("page", tmp_path / "out", tmp_path / "kept", "the command")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["open.png", "page.md"]
    assert (tmp_path / "kept" / "closed.png").is_file()
    assert file.read_text().startswith("# Title\n\n```\nthe command\n```\n\nCaption.")
