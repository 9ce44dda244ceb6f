"""lookdown prepare, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.chips import layouts
from tests.cli.reference import documented_keys
from typer.testing import CliRunner

from lookdown.chips.manifest import Manifest
from lookdown.chips.sources import SOURCES
from lookdown.cli import app
from lookdown.errors import LookdownError


def run(*arguments: str) -> str:
    shown = CliRunner().invoke(app, ["prepare", *arguments], env={"COLUMNS": "160"})
    if shown.exception and not isinstance(shown.exception, SystemExit):
        assert isinstance(shown.exception, LookdownError), shown.exception
        return f"error: {shown.exception}"
    return shown.output


def as_json(*arguments: str) -> Any:
    shown = CliRunner().invoke(app, ["prepare", *arguments, "--json"], catch_exceptions=False)
    return json.loads(shown.stdout)


def test_it_shows_the_classes_first_and_a_table_of_roles_last(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 24, mar20=True)
    (tmp_path / "data" / "JPEGImages" / "7.jpg").unlink()
    shown = run("mar20", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--seed", "3")
    assert "24 images, 96 objects: A1 32, A2 32, A3 32" in shown
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if line.count("│") == 5}
    assert {"A1", "A2", "A3", "background"} <= set(lines)
    manifest = Manifest.read(tmp_path / "out")
    assert f"{len(manifest):,} chips in" in shown
    assert "skipped 4:" in shown
    assert "nothing to do" in run("mar20", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--seed", "3")


def test_options_reach_the_source_the_cutter_and_the_split(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 24, mar20=True)
    out = str(tmp_path / "out")
    run("mar20", str(tmp_path / "data"), "-o", out, "--oriented", "--upright", "--margin", "0",
        "--protocol", "uda", "--train-classes", "A1, A2", "--background", "0")  # fmt: skip
    manifest = Manifest.read(tmp_path / "out")
    assert not manifest.background.any()
    assert set(manifest.with_role("train").labels) == {"A1", "A2"}
    assert manifest.table["polygon"][0].as_py() == "POLYGON ((4 8, 20 4, 24 16, 8 20, 4 8))"


def test_folders_may_be_given_as_they_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts.fair1m_chips(tmp_path / "data", 20)
    layouts.voc(tmp_path / "scenes", 12)
    monkeypatch.chdir(tmp_path)
    run("fair1m", "data", "-o", "one")
    run("voc", "./scenes", "-o", "two", "--groups", "scene")
    monkeypatch.chdir("/")
    assert len(Manifest.read(tmp_path / "one")) == 60 + 3
    assert len(Manifest.read(tmp_path / "two")) >= 48


def test_errors_are_sentences(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 12)
    out = str(tmp_path / "out")
    data = str(tmp_path / "data")
    assert "No such command 'marr20'. Did you mean 'mar20'?" in run("marr20", data, "-o", out)
    for wrong in (["--split", "paper"], ["--paper", "CBRSOR-MAR"]):
        assert "--split paper and --paper go together" in run("folder", data, "-o", out, *wrong)
    typed = ("folder", data, "-o", out, "--split", "paper", "--paper")
    assert "CBRSOR-FGSRSI has 16 classes of at least 10 chips" in run(*typed, "CBRSOR-FGSRSI")
    assert "did you mean CBRSOR-MAR?" in run(*typed, "CBRSOR-MAN")
    assert "--train-classes is for --protocol uda" in run("folder", data, "-o", out, "--train-classes", "A1")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_shows_the_classes_and_writes_nothing(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 12, ("[bold]x", "A2"))
    out = str(tmp_path / "out")
    assert "[bold]x 12" in run("fgsrsi23", str(tmp_path / "data"), "-o", out, "--dry-run")
    assert not (tmp_path / "out").exists()
    shown = CliRunner().invoke(app, ["prepare", "fgsrsi23", str(tmp_path / "data"), "-o", out], catch_exceptions=False)
    assert "[bold]x" in shown.stdout
    assert "cutting: 24 of 24" in shown.stderr


def test_a_library_error_names_the_options_of_its_source(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 12)
    typed = ("folder", str(tmp_path / "data"), "-o", str(tmp_path / "out"))
    run(*typed)
    assert "name another folder, or pass --overwrite" in run(*typed, "--seed", "1")


def test_several_sizes_of_windows(tmp_path: Path) -> None:
    layouts.save_image(tmp_path / "data" / "scene.png", 0, (200, 150))
    run("windows", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--size", "64", "--size", "100")
    sides = {row.split(":")[1] for row in Manifest.read(tmp_path / "out").table["id"].to_pylist()}
    assert {"0,0,64,64", "0,0,100,100"} <= sides


def test_the_synthetic_world_needs_no_data(tmp_path: Path) -> None:
    out = str(tmp_path / "world")
    options = (
        "--kinds",
        "ships",
        "--chips",
        "10",
        "--size",
        "16",
        "--shift",
        "0.5",
        "--protocol",
        "uda",
        "--seed",
        "2",
    )
    shown = run("synthetic", "-o", out, *options)
    manifest = Manifest.read(tmp_path / "world")
    assert f"{len(manifest):,} chips in" in shown
    assert "trawler" in shown
    assert set(manifest.with_role("train").table["sensor"].to_pylist()) == {"near"}
    assert set(manifest.with_role("query").table["sensor"].to_pylist()) == {"near-far-0.50"}
    assert "nothing to do" in run("synthetic", "-o", out, *options)
    assert "chips and 0 scenes would be drawn" in run("synthetic", "-o", str(tmp_path / "dry"), "--dry-run")
    assert not (tmp_path / "dry").exists()
    assert "other options" in run("synthetic", "-o", out, *options[:-1], "3")
    assert "2 scenes with their boxes" in run(
        "synthetic", "-o", str(tmp_path / "scenes"), "--kinds", "aircraft", "--chips", "10", "--size", "16",
        "--scenes", "2", "--scene-size", "512",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["folder", "somewhere", "--stride", "8"], "No such option: --stride"),
        (["synthetic", "somewhere"], "unexpected extra argument"),
        (["synthetic", "--stride", "4"], "No such option: --stride"),
        (["synthetic", "--split", "none"], "No such option: --split"),
        (["synthetic", "--paper", "CBRSOR-MAR"], "No such option: --paper"),
        (["synthetic", "--margin", "0.5"], "No such option: --margin"),
        (["voc"], "Missing argument 'ROOT'"),
        (["voc", "somewhere", "--chips", "4"], "No such option: --chips"),
    ],
)
def test_a_source_takes_its_own_options_only(arguments: list[str], message: str, tmp_path: Path) -> None:
    assert message in run(*arguments, "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_help_lists_every_source_on_a_line() -> None:
    shown = run("--help")
    for name in (*SOURCES, "synthetic"):
        assert sum(line.startswith(f"│ {name} ") for line in shown.splitlines()) == 1


def test_programs_are_told_the_same(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 24, mar20=True)
    (tmp_path / "data" / "JPEGImages" / "7.jpg").unlink()
    typed = ["mar20", str(tmp_path / "data"), "-o", str(tmp_path / "out")]
    dry = as_json(*typed, "--dry-run")
    assert (dry["images"], dry["objects"], dry["classes"]) == (24, 96, {"A1": 32, "A2": 32, "A3": 32})
    assert not (tmp_path / "out").exists()
    found = as_json(*typed)
    manifest = Manifest.read(found["manifest"])
    assert set(found) == documented_keys("lookdown prepare")
    assert found["chips"] == len(manifest)
    assert not found["resumed"]
    assert {"A1", "A2", "A3"} <= {row["label"] for row in found["classes"]}
    for role in ("train", "query", "gallery"):
        assert sum(row[role] for row in found["classes"]) == len(manifest.with_role(role))
    assert sum("7.jpg" in item["reason"] for item in found["skipped"]) == 4
    assert as_json(*typed) == {**found, "resumed": True}
    world = ["synthetic", "-o", str(tmp_path / "world"), "--kinds", "ships", "--chips", "10", "--size", "16"]
    planned = as_json(*world, "--dry-run")
    assert (planned["chips"], planned["scenes"]) == (as_json(*world)["chips"], 0)
