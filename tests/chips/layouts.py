"""Tiny copies of the layouts that sources read, made on the spot."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CLASSES = ("A1", "A2", "A3")


def data_folder(name: str) -> Path:
    """Return where the real data set is; a test that needs it is skipped where it is absent."""
    root = Path(os.environ.get("LOOKDOWN_DATA", Path(__file__).parents[2] / ".." / "shared" / "data")) / name
    if not root.is_dir():
        pytest.skip(f"{name} is not here; set LOOKDOWN_DATA to the folder that holds it")
    return root


def save_image(path: Path, seed: int, size: tuple[int, int] = (96, 80)) -> None:
    """Write a picture of blobs that no other seed resembles."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 255, size=(6, 7, 3), dtype=np.uint8))
    path.parent.mkdir(parents=True, exist_ok=True)
    small.resize(size, Image.Resampling.BICUBIC).save(path, quality=95)


def boxes_of(seed: int) -> list[tuple[str, tuple[int, int, int, int]]]:
    """Four objects a scene, of classes in turn."""
    spots = ((4, 4), (52, 6), (6, 46), (54, 44))
    return [(CLASSES[(seed + i) % 3], (x, y, x + 20 + i, y + 16 + i)) for i, (x, y) in enumerate(spots)]


def voc(root: Path, scenes: int, *, mar20: bool = False) -> None:
    """Pascal VOC, or MAR20 with its two kinds of boxes and a table of groups."""
    folders = (
        ["Annotations/Horizontal Bounding Boxes", "Annotations/Oriented Bounding Boxes"] if mar20 else ["Annotations"]
    )
    for folder in folders:
        (root / folder).mkdir(parents=True)
    for scene in range(scenes):
        save_image(root / "JPEGImages" / f"{scene}.jpg", scene)
        for folder in folders:
            objects = "".join(_voc_object(label, box, oriented="Oriented" in folder) for label, box in boxes_of(scene))
            text = f"<annotation><filename>{scene}.jpg</filename>{objects}</annotation>"
            (root / folder / f"{scene}.xml").write_text(text)
    if mar20:
        rows = "".join(f"{scene},{scene // 2}\n" for scene in range(scenes))
        (root / "scene_groups.csv").write_text("image,scene_group\n" + rows)


def _voc_object(label: str, box: tuple[int, int, int, int], *, oriented: bool) -> str:
    x0, y0, x1, y1 = box
    if not oriented:
        shape = f"<bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox>"
        return f"<object><name>{label}</name>{shape}</object>"
    corners = {
        "left_top": (x0, y0 + 4),
        "right_top": (x1 - 4, y0),
        "right_bottom": (x1, y1 - 4),
        "left_bottom": (x0 + 4, y1),
    }
    shape = "".join(f"<x_{n}>{x}</x_{n}><y_{n}>{y}</y_{n}>" for n, (x, y) in corners.items())
    return f"<object><name>{label}</name><robndbox>{shape}</robndbox></object>"


def fair1m_xml(root: Path, scenes: int) -> None:
    """FAIR1M's own XML: a closed ring of points."""
    (root / "labelXml").mkdir(parents=True)
    for scene in range(scenes):
        save_image(root / "images" / f"{scene}.tif", scene)
        objects = ""
        for label, (x0, y0, x1, y1) in boxes_of(scene):
            ring = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
            points = "".join(f"<point>{x}.000000,{y}.000000</point>" for x, y in ring)
            objects += (
                f"<object><points>{points}</points><possibleresult><name>{label}</name></possibleresult></object>"
            )
        (root / "labelXml" / f"{scene}.xml").write_text(f"<annotation><objects>{objects}</objects></annotation>")


def fair1m_chips(root: Path, groups: int) -> None:
    """Class folders with chips.csv and background."""
    rows = [("chip", "class", "image", "scene_group")]
    for group in range(groups):
        for index, label in enumerate(CLASSES):
            name = f"{label}/{label}_{group}.jpg"
            save_image(root / "chips" / name, 100 * group + index, (40, 24))
            rows.append((name, label, str(group), str(group)))
    for index in range(3):
        save_image(root / "background" / f"bg_{900 + index:05d}_0.jpg", 9000 + index, (40, 40))
    with (root / "chips.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def coco(root: Path, scenes: int) -> None:
    """One JSON file; every other object has a polygon."""
    images, annotations = [], []
    for scene in range(scenes):
        save_image(root / "rgb" / f"{scene}.png", scene)
        images.append({"id": scene, "file_name": f"rgb/{scene}.png", "width": 96, "height": 80})
        for index, (label, (x0, y0, x1, y1)) in enumerate(boxes_of(scene)):
            outline = [[x0, y0, x1, y0, x1, y1, x0, y1]] if index % 2 else {"counts": [1], "size": [80, 96]}
            annotations.append({
                "id": 10 * scene + index, "image_id": scene, "category_id": CLASSES.index(label),
                "bbox": [x0, y0, x1 - x0, y1 - y0], "segmentation": outline,
            })  # fmt: skip
    categories = [{"id": index, "name": name} for index, name in enumerate(CLASSES)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (root / "annotations.json").write_text(json.dumps(content))


def dota(root: Path, scenes: int) -> None:
    """labelTxt with a head of two lines."""
    (root / "labelTxt").mkdir(parents=True)
    for scene in range(scenes):
        save_image(root / "images" / f"P{scene}.png", scene)
        lines = ["imagesource:GoogleEarth", "gsd:0.5" if scene else "gsd:null"]
        for label, (x0, y0, x1, y1) in boxes_of(scene):
            lines.append(f"{x0} {y0} {x1} {y0} {x1} {y1} {x0} {y1} {label} 0")
        (root / "labelTxt" / f"P{scene}.txt").write_text("\n".join(lines))


def folders(root: Path, chips: int, classes: tuple[str, ...] = CLASSES) -> None:
    """A folder a class."""
    for index, label in enumerate(classes):
        for chip in range(chips):
            save_image(root / label / f"{chip:03d}.jpg", 1000 * index + chip, (32, 32))
