"""lookdown index, as it is typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.training.runs import recipe, world
from typer.testing import CliRunner

from lookdown import Gallery
from lookdown.chips.manifest import Manifest
from lookdown.cli import app
from lookdown.errors import GalleryError, InputError, LookdownError, SourceError
from lookdown.training.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "run"
    train(recipe(stage2={"epochs": 1}), folder)
    return folder


def refused(*typed: object) -> LookdownError:
    shown = CliRunner().invoke(app, ["index", *map(str, typed)])
    assert shown.exit_code != 0
    assert isinstance(shown.exception, LookdownError)
    return shown.exception


def test_a_run_and_its_world_are_all_it_takes(run: Path, tmp_path: Path) -> None:
    shutil.copytree(world(), tmp_path / "world", ignore=shutil.ignore_patterns("features"))
    wanted = Manifest.read(tmp_path / "world").with_role("gallery")
    bad = wanted.paths[0]
    content = bad.read_bytes()
    bad.write_bytes(b"no picture")
    typed = ["index", str(run), str(tmp_path / "world"), "-o", str(tmp_path / "g")]
    shown = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert shown.exit_code == 0
    assert f"{len(wanted) - 1:,} chips added; {len(wanted) - 1:,} in" in shown.stdout
    assert f"skipped {bad}" in shown.stderr
    assert str(bad) in (tmp_path / "g" / "skipped.csv").read_text()
    bad.write_bytes(content)
    again = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert f"1 chips added, {len(wanted) - 1:,} were there; {len(wanted):,} in" in again.stdout
    told = json.loads(CliRunner().invoke(app, [*typed, "--json"], catch_exceptions=False).stdout)
    assert set(told) == documented_keys("lookdown index")
    assert told == {
        "gallery": str(tmp_path / "g"),
        "chips": len(wanted),
        "embedded_by": "torch",
        "added": 0,
        "present": len(wanted),
        "skipped": {},
    }
    assert str(bad) not in (tmp_path / "g" / "skipped.csv").read_text()
    gallery = Gallery.open(tmp_path / "g")
    assert gallery.metrics()[0].about == "trained in run"
    assert gallery.metrics()[0].calibrated

    other = tmp_path / "other"
    train(recipe(seed=5, stage1={"epochs": 1, "learning_rate": 0.1}, stage2={"epochs": 0}), other)
    assert "was made with another embedder" in str(refused(other, tmp_path / "world", "-o", tmp_path / "g"))
    assert "lookdown search" in shown.stdout


def test_an_archive_without_a_label_needs_no_run(tmp_path: Path) -> None:
    shutil.copytree(world() / "chips", tmp_path / "archive")
    typed = ["index", "--embedder", "tf_efficientnet_lite0", str(tmp_path / "archive"), "-o", str(tmp_path / "g")]
    shown = CliRunner().invoke(app, [*typed, "--sensor", "S2A", "--time", "2021-05-01"], catch_exceptions=False)
    count = len(list((tmp_path / "archive").iterdir()))
    assert f"{count:,} chips added" in shown.stdout
    stats = Gallery.open(tmp_path / "g").stats()
    assert (stats.labelled, stats.sensors, (stats.first_time or "")[:10]) == (0, ("S2A",), "2021-05-01")
    more = CliRunner().invoke(app, ["index", str(tmp_path / "archive"), "-o", str(tmp_path / "g")])
    assert f"0 chips added, {count:,} were there" in more.stdout
    assert "omit --embedder" in str(refused("--embedder", "resnet18", tmp_path / "archive", "-o", tmp_path / "g"))


def test_what_cannot_be_indexed_is_said_in_a_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases = [
        ((run, tmp_path / "none", "-o", tmp_path / "g"), SourceError, "does not exist; give a manifest"),
        ((run, tmp_path / "empty", "-o", tmp_path / "g"), SourceError, "holds no image"),
        ((run, "-o", tmp_path / "g"), InputError, "nothing to index"),
        ((tmp_path / "empty", "-o", tmp_path / "new"), InputError, "is not a run, so say how to embed"),
        ((run, world(), "--embedder", "resnet18", "-o", tmp_path / "g"), InputError, "omit --embedder"),
    ]
    for typed, kind, told in cases:
        error = refused(*typed)
        assert isinstance(error, kind)
        assert told in str(error)
    assert not (tmp_path / "g").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    error = refused(run, world(), "-o", tmp_path / "other")
    assert isinstance(error, GalleryError)
    assert "thesis.tex" in str(error)


@pytest.mark.server
def test_the_table_goes_into_a_bucket_and_nothing_more_need_be_said(run: Path, tmp_path: Path, table: str) -> None:
    def typed(*words: object) -> str:
        shown = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
        assert shown.exit_code == 0
        return shown.stdout

    wanted = Manifest.read(world()).with_role("gallery")
    assert f"{len(wanted):,} chips added" in typed("index", run, world(), "-o", tmp_path / "g", "--table", table)
    typed("index", run, world(), "-o", tmp_path / "local")
    assert "0 chips added" in typed("index", run, world(), "-o", tmp_path / "g")
    assert f"{table}/records.lance" in typed("gallery", "stats", tmp_path / "g")
    chip = wanted.paths[0]
    there, here = (json.loads(typed("search", tmp_path / name, chip, "--json")) for name in ("g", "local"))
    assert there["hits"] == here["hits"]
    another = refused(run, world(), "-o", tmp_path / "g", "--table", f"{table}2")
    assert str(another).startswith(f"{tmp_path / 'g'} has its table at {table}/records.lance, and it stays there")
    assert "give it as s3://bucket/name" in str(refused(run, world(), "-o", tmp_path / "h", "--table", "ftp://a/b"))
    assert not (tmp_path / "h").exists()
