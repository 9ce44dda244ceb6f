"""From scenes to a map layer: windows, a gallery, a query, footprints that hit the boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely
from PIL import Image
from tests.chips.layouts import data_folder

from lookdown.chips.imagery import open_scene
from lookdown.chips.manifest import Manifest
from lookdown.gallery import Cutting, Results
from lookdown.gallery.index.creation import gallery_of_pretrained
from lookdown.gallery.results.write import write
from lookdown.lab.synthetic.scenes import write_scene
from lookdown.lab.synthetic.sensors import NEAR
from lookdown.lab.synthetic.world import World, draw_world


def layer(results: Results, file: Path) -> Any:
    """Write results as GeoJSON, and read them as GDAL does."""
    assert write(results, file) == ()
    found = geopandas.read_file(file)
    assert found.crs.to_epsg() == 4326
    return found


def share_on(footprints: Any, boxes: Any, of_the_box: float) -> float:
    """Return the share of footprints that cover so much of some box."""
    tree = shapely.STRtree(boxes)
    hits = 0
    for footprint in footprints:
        near = boxes[tree.query(footprint)]
        hits += bool((shapely.area(shapely.intersection(near, footprint)) >= of_the_box * shapely.area(near)).any())
    return hits / len(footprints)


def test_synthetic_scenes_from_windows_to_a_layer(tmp_path: Path) -> None:
    scenes = [write_scene(tmp_path / "scenes", f"harbour-{n}", NEAR, size=1024, gsd=2.0, seed=n) for n in range(2)]
    cutting = Cutting(windows=(96,), scene_side=512)
    gallery = gallery_of_pretrained(
        tmp_path / "g", "tf_efficientnet_lite0", [tmp_path / "scenes"], cutting, dimension=32
    )
    added = gallery.add(tmp_path / "scenes", cutting=cutting)
    assert added.added == len(gallery) > 300
    assert gallery.add(tmp_path / "scenes", cutting=cutting).added == 0

    ships = geopandas.read_file(scenes[0].boxes)
    others = geopandas.read_file(scenes[1].boxes)
    boxes = np.concatenate([ships.geometry.values, others.geometry.values])
    with open_scene(scenes[0].image) as scene:  # the largest ship, cut out as an analyst would
        rows = gallery.snapshot.read(np.arange(len(gallery)), ["footprint"])
        windows = shapely.from_wkt([row["footprint"] for row in rows])
        ship = ships.geometry.values[int(np.argmax(shapely.area(ships.geometry.values)))]
        nearest = int(np.argmax(shapely.area(shapely.intersection(windows, ship))))
        x0, y0, x1, y1 = map(int, str(gallery.snapshot.ids[nearest]).split(":")[1].split(","))
        pixels = scene.read((x0, y0, x1, y1))
    Image.fromarray(pixels).save(tmp_path / "query.png")

    found = gallery.search(tmp_path / "query.png", k=12)
    hits = layer(found, tmp_path / "hits.geojson")
    chance = share_on(windows, boxes, 0.25)
    assert share_on(hits.geometry.values, boxes, 0.25) > 1.5 * chance
    for first in range(len(hits)):
        for second in range(first):
            one, other = hits.geometry[first], hits.geometry[second]
            assert one.intersection(other).area <= 0.21 * min(one.area, other.area)
    every = gallery.search(tmp_path / "query.png", k=12, overlap=1)
    overlapping = [shapely.from_wkt(hit.footprint) for hit in every.hits]
    assert any(
        a.intersection(b).area > 0.21 * min(a.area, b.area) for i, a in enumerate(overlapping) for b in overlapping[:i]
    )


@pytest.mark.paper
def test_ships_in_sentinel_2_scenes_are_found_where_they_were_marked(tmp_path: Path) -> None:
    data = data_folder("sen2ships")
    marked = json.loads((data / "annotations.json").read_text())
    scenes = {image["id"]: image["file_name"] for image in marked["images"]}
    cutting = Cutting(windows=(32,), strides=(16,), scene_side=128)
    files = [data / "rgb" / Path(name).name for name in sorted(set(scenes.values()))][:2]
    gallery = gallery_of_pretrained(tmp_path / "g", "tf_efficientnet_lite0", files, cutting, dimension=32)
    gallery.add(files, cutting=cutting)
    boxes: dict[str, list[Any]] = {}
    for annotation in marked["annotations"]:
        x, y, w, h = annotation["bbox"]
        name = Path(scenes[annotation["image_id"]]).name
        boxes.setdefault(name, []).append((x, y, x + w, y + h))

    def on_a_ship(chip: str) -> bool:
        name, corners = chip.split(":")
        x0, y0, x1, y1 = map(int, corners.split(","))
        return any(x0 <= (a + c) / 2 < x1 and y0 <= (b + d) / 2 < y1 for a, b, c, d in boxes.get(name, ()))

    ids = gallery.snapshot.ids.to_pylist()
    chance = float(np.mean([on_a_ship(chip) for chip in ids]))
    name = max((file.name for file in files), key=lambda scene: len(boxes.get(scene, ())))
    sizes = [(c - a) * (d - b) for a, b, c, d in boxes[name]]
    examples = [boxes[name][place] for place in np.argsort(sizes)[-6:-1]]
    with open_scene(data / "rgb" / name) as scene:
        chips = [
            scene.read((
                max(0, int(a + c) // 2 - 16), max(0, int(b + d) // 2 - 16),
                min(scene.width, int(a + c) // 2 + 16), min(scene.height, int(b + d) // 2 + 16),
            ))
            for a, b, c, d in examples
        ]  # fmt: skip
    found = gallery.search(chips, k=20)
    precision = float(np.mean([on_a_ship(hit.id) for hit in found.hits]))
    print(f"sen2ships: {len(gallery):,} windows, precision at 20 {precision:.2f}, by chance {chance:.3f}")
    assert precision > 3 * chance
    hits = layer(found, tmp_path / "hits.geojson")
    assert len(hits) == 20
    with open_scene(data / "rgb" / name) as scene:
        whole = shapely.from_wkt(
            scene.footprint(((0, 0), (scene.width, 0), (scene.width, scene.height), (0, scene.height)))
        )
    inside = [hit.scene == name for hit in found.hits]
    assert all(whole.buffer(1e-6).covers(place) for place, here in zip(hits.geometry, inside, strict=True) if here)


def test_an_archive_without_a_label_is_taught_by_a_few_marks(tmp_path: Path) -> None:
    """Mark some chips, and search better for others of the same kinds."""
    draw_world(World(kinds="ships", chips=14, size=48), tmp_path / "world")
    manifest = Manifest.read(tmp_path / "world")
    gallery = gallery_of_pretrained(
        tmp_path / "g", "tf_efficientnet_lite0", [tmp_path / "world"], Cutting(), dimension=32
    )
    gallery.add(tmp_path / "world", every_role=True)
    truth = dict(zip(manifest.table["id"].to_pylist(), manifest.labels, strict=True))
    ids = gallery.snapshot.ids.to_pylist()
    gallery.label(ids, [None] * len(ids))  # an archive nobody has labelled
    assert gallery.stats().labelled == 0
    kinds = sorted({kind for kind in truth.values() if kind is not None})
    chips = {kind: [chip for chip in ids if truth[chip] == kind] for kind in kinds}
    marked = [chip for kind in kinds for chip in chips[kind][:5]]
    asked = [chip for kind in kinds for chip in chips[kind][5:9]]

    def precision() -> float:
        right = [[truth[hit.id] == truth[chip] for hit in gallery.search(chip, k=10).hits] for chip in asked]
        return float(np.mean(right))

    before = precision()
    learnt = gallery.teach(marked, [truth[chip] for chip in marked])
    after = precision()
    print(f"precision at 10 over {len(asked)} queries: {before:.3f}, after {len(marked)} marks {after:.3f}")
    assert learnt.changed
    assert after > before + 0.03
