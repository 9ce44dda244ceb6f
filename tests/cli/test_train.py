"""lookdown train, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.training.runs import recipe
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.config import to_toml
from lookdown.errors import LookdownError


def run(*arguments: str) -> str:
    shown = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "160"})
    if shown.exception and not isinstance(shown.exception, SystemExit):
        assert isinstance(shown.exception, LookdownError), shown.exception
        return f"error: {shown.exception}"
    return shown.output


def test_from_a_recipe_to_a_run(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(to_toml(recipe()))
    out = str(tmp_path / "run")
    shown = run("train", str(tmp_path / "quick.toml"), "-o", out, "--set", "stage2.epochs=1", "--set", "seed=3")
    assert "epoch   3  stage 2" in shown
    assert "likelihood ratio" in shown
    assert "score it with `lookdown evaluate" in run("train", "--resume", out)
    told = CliRunner().invoke(app, ["train", "--resume", out, "--json"], catch_exceptions=False)
    found = json.loads(told.stdout)
    assert found["path"] == out
    assert [record["epoch"] for record in found["history"]] == [1, 2, 3]
    assert set(found) == documented_keys("lookdown train")


def test_only_the_last_word_goes_to_stdout(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(to_toml(recipe(stage2={"epochs": 0})))
    typed = ["train", str(tmp_path / "quick.toml"), "-o", str(tmp_path / "run")]
    shown = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert shown.stdout.splitlines() == [
        f"wrote {tmp_path / 'run'}; score it with `lookdown evaluate {tmp_path / 'run'}`"
    ]
    assert "epoch   2  stage 1  loss" in shown.stderr


def test_a_run_goes_on_with_another_rate_and_nothing_else(tmp_path: Path) -> None:
    settings = ["--set", "stage1.learning_rate=1e38", "--set", "batches.classes=16", "--set", "batches.samples=12"]
    (tmp_path / "quick.toml").write_text(to_toml(recipe()))
    out = str(tmp_path / "run")
    shown = run("train", str(tmp_path / "quick.toml"), "-o", out, *settings)
    assert "lookdown train --resume RUN --set stage1.learning_rate=5e+37" in shown
    assert "can be changed" in run("train", "--resume", out, "--set", "seed=4")
    shown = run("train", "--resume", out, "--set", "stage1.learning_rate=0.01")
    assert "score it with `lookdown evaluate" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "give a recipe and a folder"),
        (["train", "quick.toml"], "give a recipe and a folder"),
        (["train", "quick.toml", "-o", "run", "--set", "stage2.epoch=1"], "did you mean stage2.epochs"),
        (["train", "missing.toml", "-o", "run"], "missing.toml"),
        (["train", "--resume", "nowhere"], "is not a run of `lookdown train`"),
        (["train", "quick.toml", "-o", "run", "--set", "stage2.loss=tripet"], "did you mean triplet"),
        (["train", "quick.toml", "--resume", "run"], "give a recipe and a folder"),
    ],
)
def test_errors_are_sentences(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quick.toml").write_text(to_toml(recipe()))
    assert message in run(*arguments)
    assert not Path("run").exists()
