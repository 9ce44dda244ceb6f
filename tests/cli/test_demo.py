from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from lookdown.cli import app


def test_the_demo_is_offered_first() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert shown.index("demo") < shown.index("doctor")


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("mine")
    found = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "demo")])
    assert found.exit_code != 0
    assert (tmp_path / "demo").read_text() == "mine"
