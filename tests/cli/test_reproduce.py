"""lookdown reproduce: what is typed goes where it is told."""

from __future__ import annotations

from pathlib import Path

from tests.experiments.smoke import smoke
from typer.testing import CliRunner

from lookdown.cli import app


def test_the_command_line_writes_where_it_is_told(tmp_path: Path) -> None:
    runs = str(smoke().runs)
    done = CliRunner().invoke(
        app, ["reproduce", "table1", "--scale", "smoke", "--runs", runs, "-o", str(tmp_path), "--seeds", "1"]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "table1.md").is_file()
    assert "table1.md" in done.output
