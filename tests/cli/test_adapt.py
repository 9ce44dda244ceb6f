"""lookdown adapt, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.reference import documented_keys
from tests.training.runs import recipe, world
from typer.testing import CliRunner

from lookdown import load_metric
from lookdown.cli import app
from lookdown.errors import OutputError
from lookdown.training.train import train


def test_a_metric_is_written_and_what_became_of_it_is_said(tmp_path: Path) -> None:
    train(recipe(), tmp_path / "run")
    typed = ["adapt", str(tmp_path / "run"), "--data", str(world()), "-o", str(tmp_path / "metric")]
    shown = CliRunner().invoke(app, [*typed, "--clusters", "6", "--method", "cplfpa"], catch_exceptions=False)
    assert "in 6 clusters (separation " in shown.output
    assert "the metric is not calibrated" in shown.output
    assert load_metric(tmp_path / "metric").pseudo_labelled_
    again = CliRunner().invoke(app, typed)
    assert isinstance(again.exception, OutputError)
    assert "pass --overwrite" in str(again.exception)
    kept = CliRunner().invoke(app, [*typed, "--overwrite", "--json"], catch_exceptions=False)
    found = json.loads(kept.stdout)
    metric = load_metric(found["metric"])
    assert found["adapted"] == metric.pseudo_labelled_
    assert found["calibrated"] == (metric.calibration_ is not None)
    assert found["reason"]
    assert set(found) == documented_keys("lookdown adapt")
    assert "embedding: " in kept.stderr
    evaluated = ["evaluate", str(tmp_path / "run"), "--adapted", str(tmp_path / "metric")]
    shown = CliRunner().invoke(app, evaluated, catch_exceptions=False)
    assert "adapted - glrt:" in shown.output
