"""lookdown evaluate, as it is typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.training.runs import recipe, world
from typer.testing import CliRunner

from lookdown.chips.manifest import Manifest
from lookdown.cli import app
from lookdown.errors import InputError, OutputError
from lookdown.evaluation import Evaluation
from lookdown.training.train import train


def test_figures_as_tables_and_as_data(tmp_path: Path) -> None:
    train(recipe(), tmp_path / "run")
    shown = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run")]).output
    assert shown.count("mean of queries") == 3
    assert "glrt - cosine:" in shown
    assert "kinds - cosine:" in shown
    data = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--metric", "euclidean", "--json"]).stdout
    found = json.loads(data)
    stored = Evaluation.from_json(json.dumps(found["evaluations"]["euclidean"]))
    assert 0 < stored.mean_average_precision < 1
    mean = found["means"]["euclidean"]["mean_average_precision"]
    assert mean["low"] <= mean["value"] == stored.mean_average_precision <= mean["high"]
    assert set(found) == documented_keys("lookdown evaluate")
    assert found["differences"] == []
    assert found["unreadable"] == {"queries": 0, "gallery": 0, "first": None}
    all_three = json.loads(CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--json"]).stdout)
    assert set(all_three["evaluations"]) == set(all_three["means"]) == {"cosine", "glrt", "kinds"}
    means = {name: mean["mean_average_precision"]["value"] for name, mean in all_three["means"].items()}
    assert [(gain["of"], gain["minus"]) for gain in all_three["differences"]] == [
        ("glrt", "cosine"),
        ("kinds", "cosine"),
    ]
    for gain in all_three["differences"]:
        assert gain["value"] == pytest.approx(means[gain["of"]] - means["cosine"])


def test_chips_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    train(recipe(stage2={"epochs": 0}), tmp_path / "run")
    shutil.copytree(world(), tmp_path / "world", ignore=shutil.ignore_patterns("features"))
    bad = Manifest.read(tmp_path / "world").with_role("gallery").paths[0]
    bad.write_bytes(b"no picture")
    command = ["evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "world"), "--metric", "cosine"]
    sentence = "0 queries and 1 chips of the gallery could not be read and are left out, the first:"
    shown = CliRunner().invoke(app, command)
    assert sentence in shown.stderr
    assert bad.name in shown.stderr
    assert sentence not in shown.stdout
    as_data = CliRunner().invoke(app, [*command, "--json"])
    assert sentence in as_data.stderr
    unreadable = json.loads(as_data.stdout)["unreadable"]
    assert (unreadable["queries"], unreadable["gallery"]) == (0, 1)
    assert bad.name in unreadable["first"]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["evaluate", str(tmp_path)])
    assert isinstance(shown.exception, OutputError)
    assert "is not a run of `lookdown train`" in str(shown.exception)
    both = CliRunner().invoke(app, ["evaluate", str(tmp_path), "--metric", "kinds", "--adapted", str(tmp_path)])
    assert isinstance(both.exception, InputError)
    assert "give one of them" in str(both.exception)
