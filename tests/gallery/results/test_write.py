"""The format by the suffix."""

from __future__ import annotations

from pathlib import Path

import geopandas
import pytest
from tests.gallery.results.found import JPEG, bare, found, hit, naughty

from lookdown.errors import InputError, OutputError
from lookdown.gallery.results.contact_sheet import to_html
from lookdown.gallery.results.csv_text import to_csv
from lookdown.gallery.results.geojson import to_geojson
from lookdown.gallery.results.json_text import to_json
from lookdown.gallery.results.write import SUFFIXES, check_path, write


def test_each_suffix_has_its_format(tmp_path: Path) -> None:
    results = naughty()
    texts = {
        ".json": to_json(results), ".csv": to_csv(results), ".geojson": to_geojson(results), ".html": to_html(results),
    }  # fmt: skip
    for suffix, text in texts.items():
        file = tmp_path / f"hits{suffix.upper()}"
        assert write(results, file) == ()
        assert file.read_bytes().decode() == text
    write(results, str(tmp_path / "hits.parquet"))
    assert len(geopandas.read_parquet(tmp_path / "hits.parquet")) == len(results)
    assert {*texts, ".parquet"} == set(SUFFIXES)


def test_options_reach_their_format(tmp_path: Path) -> None:
    write(found(hit()), tmp_path / "hits.json", thumbnails=True)
    assert (tmp_path / "hits.json").read_text() == to_json(found(hit()), thumbnails=True)
    write(found(hit()), tmp_path / "hits.html", query_thumbnail=JPEG)
    assert (tmp_path / "hits.html").read_text() == to_html(found(hit()), JPEG)


@pytest.mark.parametrize("name", ["hits.txt", "hits", ".json", "hits.json.gz", "hits.shp"])
def test_another_suffix_is_refused_with_the_known_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"use the suffix \.json, \.csv, \.geojson, \.parquet or \.html"):
        write(found(hit()), tmp_path / name)
    with pytest.raises(InputError, match=name):
        check_path(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_stands_is_replaced_only_when_asked(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"hits{suffix}"
    file.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        write(found(hit()), file)
    assert file.read_text() == "mine"
    write(found(hit()), file, overwrite=True)
    assert file.read_bytes() != b"mine"


def test_a_path_can_be_checked_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("mine")
    assert check_path(tmp_path / "new.CSV") == ".csv"
    assert check_path(tmp_path / "old.csv", overwrite=True) == ".csv"
    with pytest.raises(OutputError, match=r"old\.csv exists"):
        check_path(tmp_path / "old.csv")
    with pytest.raises(OutputError, match="absent is not a folder"):
        check_path(tmp_path / "absent" / "new.csv")
    with pytest.raises(OutputError, match=r"old\.csv is not a folder"):
        check_path(tmp_path / "old.csv" / "new.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_place_that_cannot_be_written_is_named(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=f"hits{suffix} cannot be written"):
        write(found(hit()), tmp_path / "absent" / f"hits{suffix}")


def test_hits_that_are_not_on_the_map_are_told(tmp_path: Path) -> None:
    results = found(hit(), bare(), bare())
    assert write(results, tmp_path / "a.geojson") == (
        "2 of 3 hits have no known place on Earth: left out of the layer",
    )
    assert write(found(bare()), tmp_path / "a.parquet") == (
        "1 of 1 hit has no known place on Earth: in the table without a geometry",
    )
    assert write(results, tmp_path / "a.csv") == ()
