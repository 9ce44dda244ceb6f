"""lookdown reproduce: what is typed goes where it is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.reference import documented_keys
from tests.experiments.smoke import smoke
from typer.testing import CliRunner

from lookdown.cli import app


def test_the_command_line_writes_where_it_is_told(tmp_path: Path) -> None:
    runs = str(smoke().runs)
    typed = ["reproduce", "table1", "--scale", "smoke", "--runs", runs, "-o", str(tmp_path), "--seeds", "1"]
    done = CliRunner().invoke(app, typed)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "table1.md").is_file()
    assert done.stdout == f"{tmp_path / 'table1.md'}\n"
    assert "identity, seed 0" in done.stderr
    told = CliRunner().invoke(app, [*typed, "--json"])
    assert documented_keys("lookdown reproduce") == {"files"}
    assert json.loads(told.stdout) == {"files": [str(tmp_path / "table1.md")]}
