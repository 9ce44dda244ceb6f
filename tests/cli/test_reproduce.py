"""lookdown reproduce: what is typed goes where it is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.reference import documented_keys
from tests.lab.paper.smoke import smoke
from typer.testing import CliRunner

from lookdown.cli import app


def test_the_command_line_writes_where_it_is_told(tmp_path: Path) -> None:
    runs = str(smoke().runs)
    typed = ["reproduce", "table1", "figure1", "--scale", "smoke", "--runs", runs, "-o", str(tmp_path), "--seeds", "1"]
    done = CliRunner().invoke(app, typed)
    assert done.exit_code == 0, done.output
    pages = [tmp_path / "table1.md", tmp_path / "figure1.md"]
    assert all(page.is_file() for page in pages)
    assert done.stdout == "".join(f"{page}\n" for page in pages)
    assert "identity, seed 0" in done.stderr
    told = CliRunner().invoke(app, [*typed, "--json"])
    assert documented_keys("lookdown reproduce") == {"files"}
    assert json.loads(told.stdout) == {"files": [*map(str, pages)]}
