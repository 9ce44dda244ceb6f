"""One table of all scripts: those that fail or miss are said, and the others go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.lab.bench.fake_scripts import write_scripts

from lookdown.errors import InputError, MissingExtraError
from lookdown.lab.bench import benchmarks as module
from lookdown.lab.bench.benchmarks import Benchmarks, run_benchmarks

pytest.importorskip("matplotlib")


def run(tmp_path: Path, *names: str, quick: bool = False) -> Benchmarks:
    folder = write_scripts(tmp_path / "scripts", *names)
    return run_benchmarks([], tmp_path / "out", quick=quick, folder=folder)


def test_every_script_is_in_the_table_and_the_good_ones_alone_are_good(tmp_path: Path) -> None:
    found = run(tmp_path, "fails", "fine", "misses")
    assert not found.good
    rows = found.table().splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ")[:12] for row in rows] == ["fails.py end", "fast", "late"]
    assert [row.rstrip(" |").rpartition(" | ")[2] for row in rows] == ["FAILED", "met", "MISSED"]
    assert run(tmp_path / "good", "fine").good


def test_the_files_hold_rows_machine_and_chart(tmp_path: Path) -> None:
    found = run(tmp_path, "fine", "lacks", "pictures")
    out = tmp_path / "out"
    assert {file.name for file in out.iterdir()} == {"bench.json", "bench.md", "bench.png", "more.md"}
    content = json.loads((out / "bench.json").read_text())
    assert content == json.loads(json.dumps(found.content()))
    assert content["rows"][0]["script"] == "fine"
    assert content["rows"][0]["met"] is True
    assert content["rows"][0]["ratio"] == 0.25
    assert content["scripts"][0]["printed"].startswith("a remark")
    assert "no_such_package is missing" in content["scripts"][1]["trouble"]
    assert content["machine"]["cores"] == content["threads"]
    page = (out / "bench.md").read_text()
    for part in ("lookdown bench\n", "## Fine", "`fine`, one thread", "pip install", content["machine"]["processor"]):
        assert part in page


def test_a_quick_run_fails_by_trouble_alone_and_says_that_it_was_quick(tmp_path: Path) -> None:
    found = run(tmp_path, "misses", quick=True)
    assert found.good
    assert "MISSED" not in found.table()
    assert found.content()["rows"][0]["met"] is None
    assert "A quick run" in (tmp_path / "out" / "bench.md").read_text()
    assert not run(tmp_path / "bad", "fails", quick=True).good


def test_what_is_being_done_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    folder = write_scripts(tmp_path / "scripts", "fine", "misses")
    run_benchmarks(["misses", "fine"], tmp_path / "out", note=notes.append, folder=folder)
    assert notes == ["misses, 1 of 2", "fine, 2 of 2"]


def test_what_cannot_be_done_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_scripts(tmp_path / "scripts", "fine")
    with pytest.raises(InputError, match="did you mean fine"):
        run_benchmarks(["fin"], tmp_path / "out", folder=folder)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="bench"):
        run_benchmarks(["fine"], tmp_path / "out", folder=folder)
    assert not (tmp_path / "out").exists()
