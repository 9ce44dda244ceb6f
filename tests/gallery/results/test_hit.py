"""Results are values: complete, equal where they say the same, not to be changed, and plain for every format."""

from __future__ import annotations

import math
import sys
from dataclasses import FrozenInstanceError, fields, replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import shapely
from tests.gallery.galleries import vector_gallery
from tests.gallery.results.found import SQUARE, bare, found, hit, measured

from lookdown.errors import MissingExtraError
from lookdown.gallery.results.contact_sheet import to_html
from lookdown.gallery.results.hit import Hit, estimate_fields, finite, flat_fields, search_fields, text
from lookdown.gallery.results.terminal_table import table
from lookdown.metrics.estimate import Estimate


def test_results_count_and_compare_by_what_they_say() -> None:
    assert len(found()) == 0
    assert len(found(hit(), hit(id="other"))) == 2
    assert found(hit()) == found(hit())
    assert found(hit()) != found(hit(score=4.26))


def test_results_cannot_be_changed_but_copied_with_a_change() -> None:
    results = found(hit())
    with pytest.raises(FrozenInstanceError):
        results.rows_searched = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        results.hits[0].label = "ferry"  # type: ignore[misc]
    noted = replace(results, notes=(*results.notes, "one more"))
    assert noted.notes[-1] == "one more"
    assert results.notes != noted.notes


def test_results_are_printed_as_a_table_and_shown_as_pictures() -> None:
    results = found(hit(), hit(id="<b>bold</b>"))
    assert "ffd8" not in repr(results.hits[0]).lower()
    assert "\\xff" not in repr(results.hits[0])
    assert "id='harbour-001-00037', score=4.25" in repr(results.hits[0])
    assert repr(results) == table(results)
    page = results._repr_html_()
    assert page.startswith("<iframe ")
    assert "sandbox" in page.split("srcdoc")[0]
    assert "<b>" not in page
    assert to_html(results) in unescape(page)


def test_a_search_fills_each_field_of_a_hit_from_its_row(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 60)
    by_id = {row["id"]: row for row in rows}
    results = gallery.search(X[7], k=60)
    assert len(results) == results.rows_searched == 60
    assert (results.query, results.metric, results.prior) == ("an embedding", "1-trained", 0.01)
    assert (results.requested_false_alarm_rate, results.threshold) == (None, None)
    told = [field.name for field in fields(Hit)]
    for found_hit in results.hits:
        row = by_id[found_hit.id] | {"gsd": None, "polygon": None, "thumbnail": b"", "merged": 0}
        for name in told:
            if name in row:
                assert getattr(found_hit, name) == row[name], name
    scores = [found_hit.score for found_hit in results.hits]
    assert scores == sorted(scores, reverse=True)
    assert np.isfinite(scores).all()


def test_a_hit_is_shown_with_its_picture_and_names_stay_names() -> None:
    shown = hit(label="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert 'src="data:image/jpeg;base64,' in shown
    assert "<th>false_alarm_rate</th><td>0.001</td>" in shown
    assert "<img" not in bare()._repr_html_()


def test_a_frame_has_a_row_a_hit_with_the_columns_of_the_other_formats() -> None:
    results = found(hit(), bare(id="other"))
    frame = results.to_pandas()
    assert [*frame.columns] == [*flat_fields(results.hits[0])]
    assert frame["id"].tolist() == ["harbour-001-00037", "other"]
    assert frame["score"].tolist() == [4.25, 4.25]
    assert frame["footprint"][0] == SQUARE
    assert len(found().to_pandas()) == 0


def test_geometry_is_in_degrees_and_missing_where_no_place_is_known() -> None:
    layer = found(hit(), bare()).to_geopandas()
    assert layer.crs.to_string() == "OGC:CRS84"
    assert layer.geometry[0].equals(shapely.from_wkt(SQUARE))
    assert layer.geometry[1] is None
    assert "footprint" not in layer.columns
    assert len(found().to_geopandas()) == 0


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_pandas"), ("geopandas", "to_geopandas")])
def test_without_the_package_the_extra_is_named(package: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"lookdown\[frames\]"):
        getattr(found(hit()), method)()


def test_a_row_has_every_field_of_a_hit_but_the_place_and_the_picture() -> None:
    row = flat_fields(hit())
    assert {field.name for field in fields(Hit)} - set(row) == {"thumbnail"}
    assert row["rank"] == 1
    assert (row["false_alarm_rate"], row["false_alarm_rate_low"], row["false_alarm_rate_high"]) == (
        0.001,
        0.0005,
        0.002,
    )
    assert (row["false_alarm_rate_method"], row["false_alarm_rate_supported"]) == ("empirical", True)


def test_rows_have_the_same_keys_whatever_is_known() -> None:
    first, second = flat_fields(hit()), flat_fields(bare())
    assert list(first) == list(second)
    assert [name for name, value in second.items() if value is None] == [
        "posterior", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high", "false_alarm_rate_method",
        "false_alarm_rate_supported", "label", "kind", "kind_probability", "time", "sensor", "gsd", "polygon",
        "footprint",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), None])
def test_what_is_no_number_is_none(value: float | None) -> None:
    assert finite(value) is None


def test_numbers_become_plain_ones() -> None:
    values = flat_fields(hit(score=np.float32(0.5), gsd=np.float64(2), merged=np.int64(3)))
    assert [type(values[name]) for name in ("score", "false_alarm_rate", "gsd", "merged")] == [float, float, float, int]


def test_an_estimate_of_a_model_has_no_interval() -> None:
    assert estimate_fields(Estimate.of_model(0.25, "analytic")) == {
        "value": 0.25, "low": None, "high": None, "method": "analytic", "supported": False,
    }  # fmt: skip


def test_the_search_is_told_apart_from_its_hits() -> None:
    record = search_fields(
        found(hit(), query="a\udcff", requested_false_alarm_rate=0.01, threshold=measured(3), notes=("so",))
    )
    assert record["query"] == "a\ufffd"
    assert record["requested_false_alarm_rate"] == 0.01
    assert record["threshold"]["value"] == 3
    assert record["notes"] == ["so"]


def test_bytes_that_were_no_text_become_a_mark() -> None:
    assert text("a\udcffb 🚢") == "a\ufffdb 🚢"
