from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from tests.lab.demo.conftest import Heard

from lookdown import Gallery
from lookdown.lab.demo.archive import search_scenes
from lookdown.lab.demo.charts import draw_pairs, draw_scene, jpeg_url
from lookdown.lab.paper.figure_1 import PairScores


def test_distributions_are_drawn_to_scale() -> None:
    rng = np.random.default_rng(0)
    scores = PairScores("<a loss>", "cosine", rng.uniform(0.5, 1, 4000), rng.uniform(0, 1, 4000))
    svg = ElementTree.fromstring(draw_pairs(scores))
    assert "<a loss>" in svg.attrib["aria-label"]
    heights = {}
    for path in svg.iter("path"):
        points = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path.attrib["d"]), float)
        heights[path.attrib["class"]] = 186 - points[:, 1].min()
    assert 1.6 < heights["same"] / heights["different"] < 2.2  # half as wide, so twice as high
    cut = next(line for line in svg.iter("line") if line.attrib["class"] == "cut")
    assert 240 < float(cut.attrib["x1"]) < 280  # where different pairs begin to be as frequent


def test_a_scene_shows_every_hit_and_every_object_that_was_missed(heard: Heard) -> None:
    for found in search_scenes(Gallery.open(heard.folder / "gallery"), heard.folder / "world"):
        svg = ElementTree.fromstring(draw_scene(found))
        classes = [shape.attrib["class"] for shape in svg.iter("polygon")]
        assert classes.count("right") == sum(found.right)
        assert classes.count("wrong") == len(found.hits) - sum(found.right)
        assert classes.count("missed") == len(found.missed)
        corners = [float(part) for shape in svg.iter("polygon") for part in re.split("[ ,]", shape.attrib["points"])]
        assert min(corners) > -60
        assert max(corners) < 680


def test_pictures_are_held_by_the_page_itself() -> None:
    square = np.full((8, 8, 3), 200, np.uint8)
    head, content = jpeg_url(square).split(",")
    assert head == "data:image/jpeg;base64"
    assert np.abs(np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).astype(int) - 200).max() < 3
    assert jpeg_url(base64.b64decode(content)).split(",")[1] == content
