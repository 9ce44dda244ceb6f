"""lookdown bench: a table, files, and an exit code."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.lab.bench.fake_scripts import write_scripts
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.lab.bench import benchmarks

pytest.importorskip("matplotlib")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_scripts(tmp_path / "scripts", "fine", "misses", "fails")
    monkeypatch.setattr(benchmarks, "run_benchmarks", partial(benchmarks.run_benchmarks, folder=folder))
    return tmp_path / "out"


def test_a_table_goes_to_stdout_and_progress_to_stderr(out: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "fine", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "| fast | 1 s | slow | 4 s | 0.25 | at most 0.5 | met |" in done.stdout
    assert done.stdout.endswith(f"{out / 'bench.md'}\n")
    assert "fine, 1 of 1" in done.stderr
    assert (out / "bench.json").is_file()


def test_on_a_terminal_the_table_has_columns(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    done = CliRunner().invoke(app, ["bench", "-o", str(out)])
    assert done.exit_code == 1
    assert "│" in done.stdout
    for word in ("fast", "late", "met", "MISSED", "FAILED"):
        assert word in done.stdout


def test_one_that_misses_or_fails_ends_with_code_one(out: Path) -> None:
    for name in ("misses", "fails"):
        assert CliRunner().invoke(app, ["bench", name, "-o", str(out)]).exit_code == 1
    assert CliRunner().invoke(app, ["bench", "misses", "--quick", "-o", str(out)]).exit_code == 0


def test_the_json_document_is_that_of_the_file(out: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "fine", "misses", "--json", "-o", str(out)])
    assert done.exit_code == 1
    assert json.loads(done.stdout) == json.loads((out / "bench.json").read_text())
    assert set(json.loads(done.stdout)) == documented_keys("lookdown bench")


def test_the_help_says_what_it_does_and_what_its_exit_code_means() -> None:
    shown = " ".join(CliRunner().invoke(app, ["bench", "--help"]).stdout.split())
    for part in ("beside its peers", "--quick", "--json", "--out", "lookdown bench losses"):
        assert part in shown
