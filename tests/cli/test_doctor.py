"""lookdown doctor."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from typer.testing import CliRunner

from lookdown.cli import app


def test_it_lists_what_is_there_and_how_to_get_what_is_not(monkeypatch: Any) -> None:
    def without_faiss(name: str) -> str:
        if name == "faiss-cpu":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(sys.modules["lookdown.cli.doctor"], "version", without_faiss)
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    lines = {line.split("│")[2].strip(): line for line in shown.output.splitlines() if line.count("│") > 3}
    assert version("numpy") in lines["numpy"]
    assert "pip install 'lookdown[" in lines["faiss-cpu"]
    assert "pytest" not in lines
