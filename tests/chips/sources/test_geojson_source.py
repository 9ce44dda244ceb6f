"""Polygons on the map: corners against rasterio by hand; what cannot be used is listed with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import shapely
from rasterio.transform import Affine
from rasterio.warp import transform as warp
from tests.chips import layouts

from lookdown.chips.imagery import open_scene
from lookdown.chips.sources import SourceContent
from lookdown.chips.sources import geojson_source as geojson
from lookdown.errors import SourceError

NORTH_UP = Affine(10, 0, 500_000, 0, -10, 5_000_000)
SQUARE = [(10.0, 20.0), (30.5, 20.0), (30.5, 40.0), (10.0, 40.0)]
URN = "urn:ogc:def:crs:EPSG::{}"


def scene(path: Path, transform: Affine = NORTH_UP, crs: str | None = "EPSG:32631") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(
        path, "w", driver="GTiff", count=1, width=100, height=80, dtype="uint8", crs=crs, transform=transform
    ) as file:
        file.write(np.zeros((1, 80, 100), np.uint8))
    return path


def on_map(corners: Any, transform: Affine = NORTH_UP, crs: str = "EPSG:32631", to: str = "EPSG:4326") -> list[Any]:
    """Pixel corners as a closed ring on the map, by hand."""
    t = transform
    xs, ys = zip(*((t.a * x + t.b * y + t.c, t.d * x + t.e * y + t.f) for x, y in corners), strict=True)
    ring = [list(point) for point in zip(*warp(crs, to, xs, ys), strict=True)]
    return [*ring, ring[0]]


def feature(geometry: Any, label: Any = "ship", **more: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {"label": label}, **more}


def polygon(*rings: Any) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": list(rings)}


def write(path: Path, features: list[Any], crs: str | None = None) -> Path:
    content: dict[str, Any] = {"type": "FeatureCollection", "features": features}
    if crs:
        content["crs"] = {"type": "name", "properties": {"name": crs}}
    path.write_text(json.dumps(content))
    return path


def reasons(found: SourceContent) -> dict[str, str]:
    return {entry.item: entry.reason for entry in found.skipped}


@pytest.mark.parametrize(
    ("crs", "transform"),
    [
        ("EPSG:32631", NORTH_UP),
        ("EPSG:3857", Affine(9.5, 0, 1_000_000, 0, -9.5, 6_000_000)),
        ("EPSG:4326", Affine(1e-4, 0, 12, 0, -1e-4, 60)),
        ("EPSG:32756", Affine(7, 7, 300_000, 7, -7, 6_200_000)),  # turned by 45 degrees
    ],
)
@pytest.mark.parametrize(
    ("name", "code"),
    [
        (None, "EPSG:4326"),
        ("urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"),
        (URN.format(3857), "EPSG:3857"),
        ("EPSG:3395", "EPSG:3395"),
        ("http://www.opengis.net/def/crs/EPSG/0/3857", "EPSG:3857"),
    ],
)
def test_corners_come_back_in_pixels_whatever_the_two_systems(
    crs: str, transform: Affine, name: str | None, code: str, tmp_path: Path
) -> None:
    path = scene(tmp_path / "a.tif", transform, crs)
    write(tmp_path / "a.geojson", [feature(polygon(on_map(SQUARE, transform, crs, code)), "tug", id=7)], name)
    for root in (tmp_path, path):
        found = geojson.read(root)
        (marked,) = found.crops
        assert (marked.id, marked.scene, marked.label) == ("a.tif:a.geojson:7", "a.tif", "tug")
        np.testing.assert_allclose(np.array(marked.polygon), np.array(SQUARE), atol=1e-3)
        assert not found.skipped
        assert found.scenes["a.tif"].path == path
        assert found.scenes["a.tif"].gsd is not None


def test_the_footprint_of_a_read_polygon_is_the_polygon(tmp_path: Path) -> None:
    path = scene(tmp_path / "a.tif")
    ring = on_map(SQUARE)
    found = geojson.read(tmp_path, boxes=write(tmp_path / "b.geojson", [feature(polygon(ring))]))
    with open_scene(path) as reader:
        footprint = reader.footprint(found.crops[0].polygon or ())
    np.testing.assert_allclose(shapely.from_wkt(footprint).exterior.coords, ring, atol=1e-8)


def test_a_feature_belongs_to_every_scene_with_its_centroid(tmp_path: Path) -> None:
    scene(tmp_path / "west.tif")
    scene(tmp_path / "deep" / "east.tiff", Affine(10, 0, 500_500, 0, -10, 5_000_000))  # 50 pixels to the right
    left, both, edge = ([(x, 10.0), (x + 9, 10.0), (x + 9, 20.0), (x, 20.0)] for x in (5.0, 70.0, 97.0))
    write(
        tmp_path / "a.json",
        [feature(polygon(on_map(ring)), id=n) for n, ring in zip("abc", (left, both, edge), strict=True)],
    )
    found = geojson.read(tmp_path)
    assert list(found.scenes) == ["deep/east.tiff", "west.tif"]
    assert [item.id for item in found.crops] == [
        "deep/east.tiff:a.json:b", "deep/east.tiff:a.json:c", "west.tif:a.json:a", "west.tif:a.json:b",
    ]  # fmt: skip
    np.testing.assert_allclose(np.array(found.crops[0].polygon), np.array(both) - (50, 0), atol=1e-3)
    assert geojson.read(tmp_path) == found


def test_each_part_of_a_multipolygon_counts_and_ids_never_collide(tmp_path: Path) -> None:
    scene(tmp_path / "a.tif")
    ring = on_map(SQUARE)
    two = {"type": "MultiPolygon", "coordinates": [[ring], [on_map([(50, 50), (60, 50), (60, 60)])]]}
    ids: list[Any] = [7, "7", "7#0", None, "#3", "x", 2.5, True, ["list"], ""]
    write(tmp_path / "a.geojson", [feature(two, id=i) for i in ids])
    write(tmp_path / "b.geojson", [feature(two, id=i) for i in ids])
    found = geojson.read(tmp_path)
    names = [item.id for item in found.crops]
    assert len(set(names)) == len(names) == 2 * 2 * len(ids)
    assert "a.tif:a.geojson:x#1" in names
    assert [len(item.polygon or ()) for item in found.crops[:2]] == [4, 3]


def test_what_cannot_be_used_is_listed_and_the_rest_is_kept(tmp_path: Path) -> None:
    scene(tmp_path / "a.tif")
    ring = on_map(SQUARE)
    bow_tie = on_map([(10, 10), (20, 20), (20, 10), (10, 20.5)])
    line = on_map([(10, 10), (20, 10), (15, 10)], to="EPSG:32631")
    cases: dict[str, tuple[Any, str]] = {
        "point": (feature({"type": "Point", "coordinates": ring[0]}), "a Point; only polygons"),
        "line": (feature({"type": "LineString", "coordinates": ring}), "a LineString; only polygons"),
        "far": (feature(polygon([[0, 0], [0, 1], [1, 1]])), "outside every scene"),
        "pole": (feature(polygon([[0, 95], [0, 96], [1, 96]])), "outside every scene"),
        "bow tie": (feature(polygon(bow_tie)), "crosses itself"),
        "dot": (feature(polygon([ring[0]] * 4)), "no area"),
        "two": (feature(polygon(ring[:2])), "fewer than three corners"),
        "nothing": (feature(None), "no geometry"),
        "empty": (feature(polygon()), "malformed coordinates"),
        "text": (feature(polygon("abcd")), "malformed coordinates"),
        "deep": (feature(polygon([ring])), "malformed coordinates"),
        "null": (feature(polygon([[None, 1], [2, 3], [4, 5]])), "malformed coordinates"),
        "nan": (feature(polygon([[float("nan"), 1], [2, 3], [4, 5]])), "not finite"),
        "huge": (feature(polygon([[10**400, 1], [2, 3], [4, 5]])), "malformed coordinates"),
        "object": (feature({"type": "Polygon", "coordinates": {}}), "malformed coordinates"),
        "parts": (feature({"type": "MultiPolygon", "coordinates": 5}), "without polygons"),
        "label": (feature(polygon(ring), ["ship"]), "not one value"),
    }
    features = [{**content, "id": name} for name, (content, _) in cases.items()]
    features += [feature(polygon(ring), id="good"), "not a feature", feature(polygon(ring[:-1]), id="open")]  # type: ignore[list-item]
    found = geojson.read(tmp_path, boxes=write(tmp_path / "b.geojson", features))
    listed = reasons(found)
    for name, (_, reason) in cases.items():
        assert reason in listed[f"b.geojson:{name}"], name
    assert listed[f"b.geojson:#{len(cases) + 1}"] == "no geometry"
    assert len(listed) == len(cases) + 1
    assert [item.id for item in found.crops] == ["a.tif:b.geojson:good", "a.tif:b.geojson:open"]
    collinear = write(tmp_path / "c.geojson", [feature(polygon(line))], URN.format(32631))
    assert reasons(geojson.read(tmp_path, boxes=collinear)) == {"c.geojson:#0": "no area"}


def test_labels_are_text_or_unknown_and_a_misspelt_name_is_answered(tmp_path: Path) -> None:
    scene(tmp_path / "a.tif")
    features = [feature(polygon(on_map(SQUARE)), label) for label in ("tug", 3, None, "")]
    features += [{"type": "Feature", "geometry": polygon(on_map(SQUARE)), "properties": None}]
    path = write(tmp_path / "a.geojson", features)
    assert [item.label for item in geojson.read(tmp_path).crops] == ["tug", "3", None, None, None]
    with pytest.raises(SourceError, match=r"no feature has the property 'lable'; choose .* label"):
        geojson.read(tmp_path, label="lable")
    path.write_text(path.read_text().replace('"label"', '"kind"'))
    assert [item.label for item in geojson.read(tmp_path, label="kind").crops][:1] == ["tug"]
    assert {item.label for item in geojson.read(tmp_path).crops} == {None}


def test_scenes_that_cannot_be_used_are_listed(tmp_path: Path) -> None:
    scene(tmp_path / "good.tif")
    scene(tmp_path / "nowhere.tif", crs=None)
    (tmp_path / "bad.tif").write_bytes(b"no image")
    (tmp_path / "coco.json").write_text('{"images": []}')
    write(tmp_path / "a.geojson", [feature(polygon(on_map(SQUARE)))])
    found = geojson.read(tmp_path)
    assert list(found.scenes) == ["good.tif"]
    listed = reasons(found)
    assert set(listed) == {"nowhere.tif", "bad.tif", "coco.json"}
    assert "georeference it" in listed["nowhere.tif"]
    (tmp_path / "good.tif").unlink()
    with pytest.raises(SourceError, match=r"no scene that can be used; the first: .*bad\.tif"):
        geojson.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"type": "FeatureCollection", "features": [], "name": "caf\xe9"}', "is not UTF-8"),
        (b'{"type": "FeatureCollection"}', "has no list of features"),
        (b'{"type": "Feature"}', "no GeoJSON FeatureCollection found"),
        (b'{"type": "FeatureCollection", "features": [], "crs": 5}', "unknown CRS 5"),
        (b'{"type": "FeatureCollection", "features": [], "crs": {"type": "name", "properties": []}}', "unknown CRS"),
    ],
)
def test_a_damaged_file_is_refused_by_name(content: bytes, message: str, tmp_path: Path) -> None:
    scene(tmp_path / "a.tif")
    path = tmp_path / "boxes.geojson"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        geojson.read(tmp_path, boxes=path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["/etc/passwd", "https://example.org/crs", "EPSG:999999", "EPSG:" + "9" * 30, "WGS84"])
def test_a_crs_is_known_by_number_and_never_fetched(name: str, tmp_path: Path) -> None:
    scene(tmp_path / "a.tif")
    path = write(tmp_path / "boxes.geojson", [feature(polygon(on_map(SQUARE)))], name)
    with pytest.raises(SourceError, match=r"unknown CRS .* reproject"):
        geojson.read(tmp_path, boxes=path)


def test_places_without_scenes_or_polygons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no GeoTIFF"):
        geojson.read(tmp_path)
    path = scene(tmp_path / "a.tif")
    for root in (tmp_path, path):
        with pytest.raises(SourceError, match="no GeoJSON FeatureCollection found"):
            geojson.read(root)
    with pytest.raises(SourceError, match="does not exist"):
        geojson.read(tmp_path, boxes=tmp_path / "gone.geojson")


def test_boxes_of_real_ships_come_back_to_a_pixel(tmp_path: Path) -> None:
    folder = layouts.data_folder("sen2ships")
    content = json.loads((folder / "annotations.json").read_text())
    features, expected = [], {}
    for image in content["images"]:
        with rasterio.open(folder / image["file_name"]) as file:
            for note in (a for a in content["annotations"] if a["image_id"] == image["id"]):
                x, y, w, h = note["bbox"]
                corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
                features.append(feature(polygon(on_map(corners, file.transform, file.crs)), id=note["id"]))
                expected[f"{image['file_name']}:ships.geojson:{note['id']}"] = corners
    found = geojson.read(folder, boxes=write(tmp_path / "ships.geojson", features))
    assert {item.id for item in found.crops} == set(expected)
    assert len(expected) == 118
    for item in found.crops:
        np.testing.assert_allclose(np.array(item.polygon), expected[item.id], atol=1e-3)
