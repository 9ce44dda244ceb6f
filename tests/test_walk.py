"""The files that work passes through, as docs/architecture.md lists them: traced, so that the page cannot go stale."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import load_digits
from tests.training.runs import recipe

import lookdown
from lookdown import Gallery, GaussianLikelihoodRatio, adapt, train
from lookdown.gallery.results.write import write
from lookdown.lab.synthetic import small_world
from lookdown.training.loop import Step
from lookdown.training.train import Observer

SOURCE = Path(lookdown.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


class Trace:
    """The files of the product of which a function runs, in whatever thread; importing does not count."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def start(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(SOURCE)):
            file = Path(code.co_filename).relative_to(SOURCE).as_posix()
            if not file.startswith("lab/"):
                self.files.add(file)


@contextmanager
def traced() -> Iterator[set[str]]:
    trace = Trace()
    trace.start()
    try:
        yield trace.files
    finally:
        trace.stop()


def listed(heading: str) -> set[str]:
    """Return the files that a section of the page names."""
    sections = re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next(text for text in sections if text.startswith(heading))
    return set(re.findall(r"`([\w/]+\.py)`", section))


def test_a_chip_goes_from_a_geotiff_to_a_map_layer_through_the_listed_files(tmp_path: Path) -> None:
    world = small_world(tmp_path / "world", kinds=("ferry",), scenes=1, scene_size=768)
    examples = sorted((world / "chips").glob("ferry-*.jpg"))
    Gallery.from_images(tmp_path / "gallery", examples)
    gallery = Gallery.open(tmp_path / "gallery")
    assert gallery.embedder is not None  # the network is loaded before the walk
    with traced() as files:
        gallery.add(sorted((world / "scenes").glob("*.tif")))
        write(gallery.search(examples[0], k=5), tmp_path / "hits.geojson")
    assert files == listed("One chip, from a GeoTIFF to a map layer")


def test_a_training_step_runs_through_the_listed_files(tmp_path: Path) -> None:
    trace = Trace()

    def follow_the_second_step_of_stage_2(step: Step) -> None:
        if step.stage == 2 and step.step == 0:
            trace.start()
        else:
            trace.stop()

    observer = Observer(step=follow_the_second_step_of_stage_2)
    train(recipe(trunk="finetune", stage1={"epochs": 1}, stage2={"epochs": 1}), tmp_path / "run", observer)
    assert trace.files == listed("One training step")


def test_an_adaptation_runs_through_the_listed_files() -> None:
    embeddings, kinds = load_digits(return_X_y=True)
    source = kinds < 5
    metric = GaussianLikelihoodRatio(shrinkage=0.1, indefinite="keep").fit(embeddings[source], kinds[source])
    with traced() as files:
        adapt(metric, embeddings[~source])
    assert files == listed("One adaptation")
