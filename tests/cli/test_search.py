"""lookdown search, as it is typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import geopandas
import pytest
from tests.cli.reference import documented_keys
from tests.gallery.galleries import SCENES, vector_gallery
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import LookdownError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str], list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("search") / "g"
    gallery, _, rows = vector_gallery(folder)
    gallery.calibrate()
    return str(folder), [row["id"] for row in rows], rows


def shown(*typed: object) -> str:
    found = CliRunner().invoke(app, ["search", *map(str, typed)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def hits(*typed: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shown(*typed, "--json"))["hits"]
    return found


def test_a_table_and_json_say_the_same(made: Any) -> None:
    folder, ids, _ = made
    text = shown(folder, ids[0], "-k", 5)
    found = json.loads(shown(folder, ids[0], "-k", 5, "--json"))
    assert set(found) == documented_keys("lookdown search")
    assert found["query"] == ids[0]
    assert len(found["hits"]) == 5
    assert found["rows_searched"] == 299
    assert all(f"{hit['score']:.3f}" in text for hit in found["hits"])
    assert "expected to be false" in text
    assert found["expected_false_hits"]["method"] == "empirical"


def test_files_for_other_programs(made: Any, tmp_path: Path) -> None:
    folder, ids, _ = made
    files = {kind: tmp_path / f"hits.{kind}" for kind in ("csv", "geojson", "parquet", "html")}
    options = ["--csv", files["csv"], "--geojson", files["geojson"], "--geoparquet", files["parquet"]]
    typed = [folder, ids[0], "-k", 20, *options, "--html", files["html"]]
    shown(*typed)
    with files["csv"].open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 20
    placed = len(geopandas.read_file(files["geojson"]))
    assert 0 < placed < 20
    assert geopandas.read_parquet(files["parquet"]).geometry.notna().sum() == placed
    assert "<html" in files["html"].read_text()
    again = CliRunner().invoke(app, ["search", *map(str, typed)])
    assert "pass --overwrite" in str(again.exception)
    shown(*typed, "--overwrite")


def test_where_are_understood(made: Any) -> None:
    folder, ids, rows = made
    by_id = {row["id"]: row for row in rows}
    assert {hit["label"] for hit in hits(folder, ids[0], "--label", "it's", "--label", "x = y")} == {"it's", "x = y"}
    assert {hit["scene"] for hit in hits(folder, ids[0], "--scene", SCENES[1])} == {SCENES[1]}
    assert {hit["sensor"] for hit in hits(folder, ids[0], "--sensor", "S2'B")} == {"S2'B"}
    times = [by_id[hit["id"]]["time"] for hit in hits(folder, ids[0], "--since", "2021-03-02", "--until", "2021-05")]
    assert times
    assert all("2021-03-02" <= time[:10] <= "2021-05-31" for time in times)
    for option, place in (("--box", "-5,45,5,55"), ("--polygon", "POLYGON ((-5 45, 5 45, 5 55, -5 55, -5 45))")):
        found = hits(folder, ids[0], option, place, "-k", 300)
        assert 0 < len(found) < 299
        assert all(hit["footprint"] for hit in found)


def test_the_other_options(made: Any) -> None:
    folder, ids, _ = made
    plain = [hit["id"] for hit in hits(folder, ids[0], "-k", 10)]
    assert len(hits(folder, ids[0], ids[10], "-k", 10)) == 10
    assert ids[1] not in {hit["id"] for hit in hits(folder, ids[0], "--counter-example", ids[1], "-k", 300)}
    assert json.loads(shown(folder, ids[0], "--metric", "cosine", "--json"))["metric"] == "cosine"
    assert len(hits(folder, ids[0], "-k", 10, "--expand", 3, "--rerank")) == 10
    accepted = json.loads(shown(folder, ids[0], "--false-alarm-rate", 0.05, "--json"))
    assert accepted["requested_false_alarm_rate"] == 0.05
    assert all(hit["score"] >= accepted["threshold"]["value"] for hit in accepted["hits"])
    assert [hit["id"] for hit in hits(folder, ids[0], "-k", 10, "--overlap", 1)] == plain


def test_a_search_for_nothing_is_a_wrong_use(made: Any) -> None:
    shown = CliRunner().invoke(app, ["search", str(made[0])])
    assert shown.exit_code == 2
    assert "give at least one, or --kind" in shown.stderr


def test_what_cannot_be_searched_is_said_in_a_sentence(made: Any, tmp_path: Path) -> None:
    folder, ids, _ = made
    (tmp_path / "folder").mkdir()
    cases = [
        ([tmp_path / "none", ids[0]], "does not exist; make a gallery with `lookdown index`"),
        ([tmp_path / "folder", ids[0]], "is no gallery"),
        ([folder, "nobody.png"], "nobody.png is neither a chip of"),
        ([folder, "--kind", "tug"], "2-calibrated knows no kinds by name"),
        ([folder, ids[0], "--kind", "tug"], "or --kind, not both"),
        ([folder, ids[0], "-k", 3, "--false-alarm-rate", 0.1], "-k or --false-alarm-rate, not both"),
        ([folder, ids[0], "--false-alarm-rate", 0.1, "--metric", "cosine"], "knows no false-alarm rates"),
        ([folder, ids[0], "--box", "1,2,3"], "--box"),
        ([folder, ids[0], "--polygon", "POLYGON ((1 2, 3 4"], "--polygon"),
        ([folder, ids[0], "--since", "yesterday"], "since 'yesterday' is not a time"),
        ([folder, ids[0], "--metric", "best"], "has no metric 'best'; it has 1-trained"),
        ([folder, ids[0], "--csv", tmp_path / "hits.txt"], "hits.txt has no known format"),
        ([folder, ids[0], "--csv", tmp_path / "hits.html"], "should end in .csv"),
    ]
    for typed, told in cases:
        found = CliRunner().invoke(app, ["search", *map(str, typed)])
        assert found.exit_code != 0
        assert isinstance(found.exception, LookdownError), found.exception
        assert told in str(found.exception)
