"""Results as data frames: the rows of the other formats, with geometry where it is known."""

from __future__ import annotations

import sys

import pytest
import shapely
from tests.gallery.results.found import SQUARE, bare, found, hit

from lookdown.errors import MissingExtraError
from lookdown.gallery.results.plain_values import flat_rows


def test_a_frame_has_a_row_a_hit_with_the_columns_of_the_other_formats() -> None:
    results = found(hit(), bare(id="other"))
    frame = results.to_pandas()
    assert [*frame.columns] == [*flat_rows(results)[0], "footprint"]
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
