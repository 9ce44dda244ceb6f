"""Every source on a tiny copy of its layout, and on what people really hand over."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.chips import layouts

from lookdown.chips.sources import SOURCES, SourceContent, polygon_wkt, read_source
from lookdown.errors import SourceError

SCENES = 6


def expected_boxes() -> Counter[tuple[str, tuple[float, ...]]]:
    return Counter((label, tuple(map(float, box))) for scene in range(SCENES) for label, box in layouts.boxes_of(scene))


def found_boxes(found: SourceContent) -> Counter[tuple[str | None, tuple[float, ...]]]:
    boxes = []
    for item in found.crops:
        assert item.polygon is not None
        xs, ys = zip(*item.polygon, strict=True)
        boxes.append((item.label, (min(xs), min(ys), max(xs), max(ys))))
    return Counter(boxes)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("voc", layouts.voc),
        ("mar20", lambda root, scenes: layouts.voc(root, scenes, mar20=True)),
        ("fair1m", layouts.fair1m_xml),
        ("coco", layouts.coco),
        ("dota", layouts.dota),
    ],
)
def test_boxes_classes_and_images_are_read(name: str, make: Any, tmp_path: Path) -> None:
    make(tmp_path / "data", SCENES)
    found = read_source(name, tmp_path / "data")
    assert found_boxes(found) == expected_boxes()
    assert len(found.scenes) == SCENES
    assert all(scene.path.is_file() for scene in found.scenes.values())
    assert not found.skipped
    assert read_source(name, tmp_path / "data") == found, "the same ids at every run"


def test_mar20_has_groups_and_oriented_boxes_of_the_same_extent(tmp_path: Path) -> None:
    layouts.voc(tmp_path, SCENES, mar20=True)
    upright, oriented = read_source("mar20", tmp_path), read_source("mar20", tmp_path, oriented=True)
    assert [scene.group for scene in upright.scenes.values()] == ["0", "0", "1", "1", "2", "2"]
    assert found_boxes(oriented) == found_boxes(upright)
    assert oriented.crops[0].polygon == ((4, 8), (20, 4), (24, 16), (8, 20))


def test_dota_takes_over_resolution_and_sensor(tmp_path: Path) -> None:
    layouts.dota(tmp_path, 2)
    scenes = list(read_source("dota", tmp_path).scenes.values())
    assert [(scene.gsd, scene.sensor) for scene in scenes] == [(None, "GoogleEarth"), (0.5, "GoogleEarth")]


def test_fair1m_chips_come_with_their_groups_and_background(tmp_path: Path) -> None:
    layouts.fair1m_chips(tmp_path, 5)
    found = read_source("fair1m", tmp_path)
    assert Counter(item.label for item in found.crops) == {"A1": 5, "A2": 5, "A3": 5, None: 3}
    assert sum(item.background for item in found.crops) == 3
    assert found.scenes["chips/A1/A1_4.jpg"].group == "4"
    layouts.save_image(tmp_path / "background" / "bg_00004_1.jpg", 1)
    found = read_source("fair1m", tmp_path)
    assert found.scenes["background/bg_00004_1.jpg"].group == "4", "of the image that it was cut from"
    assert found.scenes["background/bg_00900_0.jpg"].group == "image 900"


@pytest.mark.parametrize("name", ["folder", "fgsrsi23", "fgsc23"])
def test_folders_are_classes_and_names_may_be_awkward(name: str, tmp_path: Path) -> None:
    layouts.folders(tmp_path, 2, ("Type 45 'Daring'", "Öresund", 'a"b', "background"))
    layouts.save_image(tmp_path / "loose.png", 1)
    found = read_source(name, tmp_path)
    labels = Counter(item.label for item in found.crops)
    assert labels == {"Type 45 'Daring'": 2, "Öresund": 2, 'a"b': 2, None: 3}
    assert sum(item.background for item in found.crops) == 2


def test_a_table_of_two_columns_gives_classes(tmp_path: Path) -> None:
    layouts.folders(tmp_path, 3)
    (tmp_path / "labels.csv").write_text(
        "image,class\nA1/000.jpg,frigate/1\nA2/001.jpg,tanker\nA9/1.jpg,gone\n../x,y\n"
    )
    found = read_source("fgsrsi23", tmp_path)
    assert [(item.id, item.label) for item in found.crops] == [("A1/000.jpg", "frigate/1"), ("A2/001.jpg", "tanker")]
    assert [item.item for item in found.skipped] == ["labels.csv, line 4", "labels.csv, line 5"]


BOMB = """<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><annotation>&b;</annotation>"""


@pytest.mark.parametrize("text", [BOMB, "<annotation><object>", "", "\x00\xff"])
def test_a_bad_annotation_file_is_skipped_by_name_and_the_rest_is_read(text: str, tmp_path: Path) -> None:
    layouts.voc(tmp_path, 3)
    (tmp_path / "Annotations" / "1.xml").write_text(text, encoding="latin-1")
    found = read_source("voc", tmp_path)
    assert [item.item for item in found.skipped] == ["1.xml"]
    assert "not readable XML" in found.skipped[0].reason
    assert len(found.crops) == 8


def test_a_bad_object_is_skipped_by_number(tmp_path: Path) -> None:
    layouts.voc(tmp_path, 1)
    file = tmp_path / "Annotations" / "0.xml"
    box = "<bndbox><xmin>x</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox>"
    bad = f"<object><name>A</name>{box}</object><object><name> </name></object><object><name>B</name></object>"
    file.write_text(file.read_text().replace("</annotation>", bad + "</annotation>"))
    found = read_source("voc", tmp_path)
    assert len(found.crops) == 4
    assert [item.item for item in found.skipped] == [f"0.xml, object {number}" for number in (4, 5, 6)]
    assert "xmin is 'x', not a number" in found.skipped[0].reason


@pytest.mark.parametrize("line", ["1 2 3 4 5 6 7 A1 0", "1 2 3 4 5 6 7 x A1 0", "1 2 3 4 5 6 7 8", "nonsense"])
def test_a_bad_line_of_dota_is_skipped_by_number(line: str, tmp_path: Path) -> None:
    layouts.dota(tmp_path, 1)
    with (tmp_path / "labelTxt" / "P0.txt").open("a") as file:
        file.write("\n" + line)
    found = read_source("dota", tmp_path)
    assert [item.item for item in found.skipped] == ["P0.txt, line 7"]
    assert len(found.crops) == 4


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<point>4.000000,4.000000</point>", "<point>four,4</point>", "is not a pair of numbers"),
        (
            "<point>24.000000,4.000000</point><point>24.000000,20.000000</point><point>4.000000,20.000000</point>",
            "",
            "make no polygon",
        ),
        ("<annotation>", "<annotation", "not readable XML"),
    ],
)
def test_a_bad_object_of_fair1m_is_skipped_by_number(old: str, new: str, reason: str, tmp_path: Path) -> None:
    layouts.fair1m_xml(tmp_path, 3)
    file = tmp_path / "labelXml" / "0.xml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    found = read_source("fair1m", tmp_path)
    assert len(found.skipped) == 1
    assert reason in found.skipped[0].reason
    assert len(found.crops) == (8 if "XML" in reason else 11)


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("fair1m", "chips.csv", b"chip,class\n", "has no column image, scene_group"),
        ("fair1m", "chips.csv", b"chip,class,image,scene_group\n\xff,a,1,1\n", "cannot be read as CSV in UTF-8"),
        ("mar20", "scene_groups.csv", b"picture,group\n1,2\n", "has no column image, scene_group"),
        ("fgsrsi23", "labels.csv", b"a,b,c\n", "line 1 has 3 columns, not two"),
        ("fgsrsi23", "labels.csv", b"x.jpg,y\n", "names no image below"),
        ("fgsrsi23", "labels.csv", b"\xff\xfe,y\n", "cannot be read as CSV in UTF-8"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(
    name: str, file: str, content: bytes, message: str, tmp_path: Path
) -> None:
    if name == "mar20":
        layouts.voc(tmp_path, 1, mar20=True)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        read_source(name, tmp_path)
    assert file in str(caught.value)


def test_chips_that_the_table_names_in_vain_or_elsewhere_are_skipped(tmp_path: Path) -> None:
    layouts.fair1m_chips(tmp_path / "data", 3)
    layouts.save_image(tmp_path / "secret.jpg", 1)
    with (tmp_path / "data" / "chips.csv").open("a") as file:
        file.write("A1/gone.jpg,A1,1,1\r\n../../secret.jpg,A1,1,1\r\n")
    found = read_source("fair1m", tmp_path / "data")
    assert [item.item for item in found.skipped] == ["chips.csv, line 11", "chips.csv, line 12"]


def test_labels_of_dota_that_are_no_text_are_skipped_by_name(tmp_path: Path) -> None:
    layouts.dota(tmp_path, 2)
    (tmp_path / "labelTxt" / "P1.txt").write_bytes(b"\xff\xfe")
    found = read_source("dota", tmp_path)
    assert [item.item for item in found.skipped] == ["P1.txt"]
    assert len(found.crops) == 4


def test_coco_annotations_without_a_place_are_skipped_and_images_outside_are_refused(tmp_path: Path) -> None:
    layouts.coco(tmp_path, 2)
    file = tmp_path / "annotations.json"
    content = json.loads(file.read_text())
    content["images"].append({"id": 77, "file_name": "../../etc/passwd.jpg"})
    content["annotations"] += [{"id": 900, "image_id": 5, "category_id": 0, "bbox": [1, 1, 2, 2]},
                               {"id": 901, "image_id": 0, "category_id": 0, "bbox": [1, 1]}]  # fmt: skip
    file.write_text(json.dumps(content))
    found = read_source("coco", tmp_path)
    assert [item.item.split(", ")[1] for item in found.skipped] == ["image 77", "annotation 900", "annotation 901"]
    assert len(found.crops) == 8


@pytest.mark.parametrize("name", SOURCES)
def test_a_folder_of_something_else_is_refused_with_what_to_give(name: str, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    with pytest.raises(SourceError, match=r"give|holds no|has no"):
        read_source(name, tmp_path)
    with pytest.raises(SourceError, match="does not exist"):
        read_source(name, tmp_path / "nowhere")


def test_names_that_are_no_text_and_ids_that_stand_twice_are_skipped(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 2)
    (tmp_path / "data" / "A1" / "000.jpg").rename(os.fsdecode(bytes(tmp_path / "data" / "A1") + b"/\xff.jpg"))
    found = read_source("folder", tmp_path / "data")
    assert [(item.item, item.reason) for item in found.skipped] == [
        ("A1/\\udcff.jpg", "its file name is not UTF-8; rename the file")
    ]
    assert len(found.crops) == 5
    layouts.coco(tmp_path / "coco", 1)
    file = tmp_path / "coco" / "annotations.json"
    content = json.loads(file.read_text())
    content["annotations"].append(content["annotations"][0])
    file.write_text(json.dumps(content))
    found = read_source("coco", tmp_path / "coco")
    assert (len(found.crops), [item.reason for item in found.skipped]) == (4, ["an object before it has the same id"])


def test_images_of_one_stem_are_kept_apart(tmp_path: Path) -> None:
    layouts.coco(tmp_path, 2)
    file = tmp_path / "annotations.json"
    content = json.loads(file.read_text())
    (tmp_path / "rgb" / "1.png").rename(tmp_path / "rgb" / "0.bmp")
    content["images"][1]["file_name"] = "rgb/0.bmp"
    file.write_text(json.dumps(content))
    found = read_source("coco", tmp_path)
    assert sorted(found.scenes) == ["rgb/0.bmp", "rgb/0.png"]
    assert len(found.crops) == 8


def test_unknown_sources_and_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no source 'marr20'; did you mean mar20\?"):
        read_source("marr20", tmp_path)
    with pytest.raises(SourceError, match=r"no source 'x'; known are coco, dota,"):
        read_source("x", tmp_path)
    layouts.folders(tmp_path, 1)
    with pytest.raises(SourceError, match="the source folder has no option 'oriented'; leave it out"):
        read_source("folder", tmp_path, oriented=True)
    with pytest.raises(SourceError, match=r"the source windows has no option 'sizes'; did you mean size\?"):
        read_source("windows", tmp_path, sizes=4)


@pytest.mark.parametrize("content", ["[1, 2", "[]", "{}"])
def test_json_that_is_not_coco_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "annotations.json").write_text(content)
    with pytest.raises(SourceError, match=r"annotations\.json"):
        read_source("coco", tmp_path)


def test_real_mar20_loses_no_object() -> None:
    root = layouts.data_folder("mar20")
    for oriented in (False, True):
        found = read_source("mar20", root, oriented=oriented)
        assert (len(found.scenes), len(found.crops), len(found.skipped)) == (1050, 6191, 0)
        assert len({item.label for item in found.crops}) == 20
        assert all(scene.group and scene.path.is_file() for scene in found.scenes.values())


def test_polygons_are_written_as_wkt() -> None:
    assert polygon_wkt(((0, 0), (1.5, 0), (1, 2))) == "POLYGON ((0 0, 1.5 0, 1 2, 0 0))"
    assert polygon_wkt(None) is None
