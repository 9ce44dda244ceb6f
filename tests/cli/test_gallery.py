"""lookdown gallery, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.reference import documented_keys
from tests.gallery.galleries import SCENES, vector_gallery
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import InputError


def shown(*typed: object) -> str:
    found = CliRunner().invoke(app, ["gallery", *map(str, typed)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def test_what_a_gallery_holds(tmp_path: Path) -> None:
    vector_gallery(tmp_path / "g")
    text = shown("stats", tmp_path / "g")
    assert "chips          300" in text
    stats = json.loads(shown("stats", tmp_path / "g", "--json"))
    assert set(stats) == documented_keys("lookdown gallery stats")
    assert (stats["chips"], stats["scenes"], stats["metric"]) == (300, len(SCENES), "1-trained")


def test_labels_teach_and_metrics_can_be_gone_back_to(tmp_path: Path) -> None:
    _, _, rows = vector_gallery(tmp_path / "g")
    ids = [row["id"] for row in rows]
    first = shown("label", tmp_path / "g", "--as", "tanker", ids[0], ids[10])
    assert "(kept): 2 labels make no pairs yet" in first
    taught = shown("label", tmp_path / "g", "--background", ids[1], ids[2])
    assert "metric 2-taught (in use" in taught
    assert "4 in all" in taught
    assert "1 chips labelled" in shown("label", tmp_path / "g", "--no-teach", "--as", "ferry", ids[3])
    assert "4 in all" in shown("label", tmp_path / "g", "--no-teach", "--clear", ids[3])
    assert "3-adapted (in use" in shown("adapt", tmp_path / "g", "--clusters", 10, "--labels", "none")
    assert "4-calibrated (in use): 3-adapted, calibrated on" in shown("calibrate", tmp_path / "g")
    listed = shown("metrics", tmp_path / "g")
    assert "* 4-calibrated" in listed
    assert "calibrated" in listed
    assert "* 1-trained" in shown("metrics", tmp_path / "g", "--use", "1-trained")
    found = json.loads(shown("metrics", tmp_path / "g", "--json"))
    assert all(set(metric) == documented_keys("lookdown gallery metrics") for metric in found)
    assert [metric["name"] for metric in found if metric["in_use"]] == ["1-trained"]
    wrong = CliRunner().invoke(app, ["gallery", "label", str(tmp_path / "g"), ids[0]])
    assert isinstance(wrong.exception, InputError)
    assert "give exactly one of" in str(wrong.exception)


def test_programs_are_told_the_same(tmp_path: Path) -> None:
    _, _, rows = vector_gallery(tmp_path / "g")
    ids = [row["id"] for row in rows]
    first = json.loads(shown("label", tmp_path / "g", "--as", "tanker", ids[0], ids[10], "--json"))
    assert (first["labelled"], first["marked"], first["learnt"]["changed"]) == (2, 2, False)
    silent = json.loads(shown("label", tmp_path / "g", "--no-teach", "--background", ids[1], "--json"))
    assert set(silent) == documented_keys("lookdown gallery label")
    assert silent == {"labelled": 1, "marked": 3, "learnt": None}
    adapted = json.loads(shown("adapt", tmp_path / "g", "--clusters", 10, "--labels", "none", "--json"))
    assert (adapted["metric"], adapted["changed"]) == ("2-adapted", True)
    calibrated = json.loads(shown("calibrate", tmp_path / "g", "--json"))
    assert calibrated["metric"] == "3-calibrated"
    for path, found in (("adapt", adapted), ("calibrate", calibrated)):
        assert set(found) == documented_keys(f"lookdown gallery {path}")
    removed = json.loads(shown("remove", tmp_path / "g", ids[0], "--json"))
    assert set(removed) == documented_keys("lookdown gallery remove")
    assert removed == {"removed": 1, "chips": 299}


def test_chips_are_removed_by_name_and_by_filter(tmp_path: Path) -> None:
    _, _, rows = vector_gallery(tmp_path / "g")
    assert "2 chips removed; 298 left" in shown("remove", tmp_path / "g", rows[0]["id"], rows[1]["id"])
    assert "chips removed" in shown("remove", tmp_path / "g", "--scene", SCENES[2], "--sensor", "S2A")
    for typed in (["remove"], ["remove", rows[5]["id"], "--scene", SCENES[0]]):
        wrong = CliRunner().invoke(app, ["gallery", typed[0], str(tmp_path / "g"), *typed[1:]])
        assert isinstance(wrong.exception, InputError)
        assert "say which chips" in str(wrong.exception)
