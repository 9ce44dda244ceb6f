"""lookdown export, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.training.runs import recipe, world
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import OutputError
from lookdown.training.train import train

pytestmark = pytest.mark.export


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    train(recipe(network={"backbone": "test_resnet"}, stage2={"epochs": 1}), folder)
    return folder


def typed(*words: object) -> str:
    shown = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def test_a_run_is_exported_and_the_next_commands_say_that_they_use_it(run: Path, tmp_path: Path) -> None:
    told = typed("export", run)
    assert f"{run / 'exported' / 'openvino'}: " in told
    assert "times as fast as torch here" in told
    assert "embedded by openvino" in typed("index", run, world(), "-o", tmp_path / "g")
    chip = next((world() / "chips").glob("*.jpg"))
    shown = CliRunner().invoke(app, ["search", str(tmp_path / "g"), str(chip), "-k", "3"], catch_exceptions=False)
    assert "embedded by openvino" in shown.stderr
    assert "embedded by" not in shown.stdout
    as_json = json.loads(typed("evaluate", run, "--exported", "openvino", "--json"))
    assert set(as_json["means"]) == {"cosine", "glrt", "kinds"}


def test_json_has_what_was_measured(run: Path) -> None:
    told = json.loads(typed("export", run, "--runtime", "onnx", "--int8", "--overwrite", "--json"))
    assert set(told) == documented_keys("lookdown export")
    assert told["exports"][0]["folder"] == str(run / "exported" / "onnx")
    assert set(told["int8"]) == {"before", "after"}
    assert len(told["exports"]) == 1 + (told["int8"]["before"] - told["int8"]["after"] <= 0.5)


def test_what_is_neither_run_nor_gallery_is_refused(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["export", str(tmp_path)])
    assert shown.exit_code != 0
    assert "is no gallery" in str(shown.exception)
    (tmp_path / "run.json").write_text("{}")
    assert isinstance(CliRunner().invoke(app, ["export", str(tmp_path)]).exception, OutputError)
