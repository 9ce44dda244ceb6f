"""lookdown evaluate, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.training.runs import recipe
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import OutputError
from lookdown.evaluation import Evaluation
from lookdown.training import training


def test_figures_as_tables_and_as_data(tmp_path: Path) -> None:
    training.train(recipe(), tmp_path / "run")
    shown = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run")]).output
    assert shown.count("mean of queries") == 2
    assert "glrt - cosine:" in shown
    data = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--metric", "euclidean", "--json"]).stdout
    found = json.loads(data)
    assert found["metric"] == "euclidean"
    stored = Evaluation.from_json(json.dumps(found["evaluation"]))
    assert 0 < stored.mean_average_precision < 1


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["evaluate", str(tmp_path)])
    assert isinstance(shown.exception, OutputError)
    assert "is no run of `lookdown train`" in str(shown.exception)
