"""The story from beginning to end; each part keeps what it has made, so that a second telling goes on from there."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from lookdown.adaptation import Adaptation
from lookdown.chips.manifest import Manifest
from lookdown.errors import OutputError
from lookdown.gallery.results.write import write
from lookdown.lab.demo.archive import accept, build_gallery, search_scenes
from lookdown.lab.demo.demo_worlds import DemoScale, draw_worlds
from lookdown.lab.demo.metric_comparison import (
    ADAPTED,
    COSINE,
    RATIO,
    Approach,
    adapted_approach,
    approach_of,
    cosine_approach,
    ratio_approach,
    see_chips,
)
from lookdown.lab.demo.page import Findings, difference, to_html
from lookdown.lab.demo.runs import LOSSES, run_of, train_run
from lookdown.progress import Progress, no_progress
from lookdown.training.loop import Step
from lookdown.training.train import Observer

__all__ = ["DemoReport", "Listener", "run_demo"]

_RATE = 1e-2


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told how the story goes; by default nobody."""

    chapter: Callable[[str], None] = lambda title: None
    progress: Progress = no_progress
    note: Callable[[str], None] = lambda sentence: None


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What is left when the story is over."""

    page: Path
    figures: dict[str, object]
    commands: list[str]  # to go on with


def run_demo(
    folder: Path, scale: DemoScale | None = None, listener: Listener | None = None, *, program: str = "lookdown"
) -> DemoReport:
    """Draw the world, train, compare, adapt, index and search, and write a page that shows it.

    `program` is how the command line is called, for the commands to go on with.
    """
    scale, listener = scale or DemoScale(), listener or Listener()
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; name a folder with -o")
    begun, again = time.monotonic(), (folder / "run").exists()
    folder.mkdir(parents=True, exist_ok=True)
    listener.chapter("drawing two worlds: one to train on, one with another sensor and other kinds")
    draw_worlds(folder, scale, listener.progress)
    for loss in LOSSES:
        listener.chapter(f"training a head on a frozen trunk by the {loss} loss")
        train_run(folder, loss, scale, _observer(listener))
    home = _compare_at_home(folder, listener)
    abroad, adaptation = _compare_abroad(folder, listener)

    listener.chapter("indexing chips and scenes, and searching them by an example")
    gallery = build_gallery(folder, listener.progress)
    scenes = search_scenes(gallery, folder / "world")
    accepted = accept(gallery, folder / "world", _RATE)
    best = max(accepted, key=lambda one: one.right)
    for name in ("hits.geojson", "hits.html"):
        write(best.results, folder / name, overwrite=True)

    findings = Findings(
        home=home,
        abroad=abroad,
        adaptation=adaptation,
        trained=len(Manifest.read(folder / "world").with_role("train")),
        gallery=len(gallery),
        scenes=scenes,
        accepted=accepted,
        provenance=_provenance(time.monotonic() - begun, again=again),
        commands=_commands(program, folder, scenes[0].examples[0]),
    )
    page = folder / "index.html"
    page.write_text(to_html(findings), encoding="utf-8")
    return DemoReport(page, findings.figures, list(findings.commands))


def _compare_at_home(folder: Path, listener: Listener) -> list[Approach]:
    listener.chapter("searching for kinds that it was trained on")
    chips = see_chips(folder / "world", folder / "run", views=1, progress=listener.progress)
    approaches = [
        approach(chips, run_of(folder, loss), loss) for loss in LOSSES for approach in (cosine_approach, ratio_approach)
    ]
    listener.note(difference(approach_of(approaches, "glrt", RATIO), approach_of(approaches, "unified", COSINE)))
    return approaches


def _compare_abroad(folder: Path, listener: Listener) -> tuple[list[Approach], Adaptation]:
    listener.chapter("searching for kinds it has never seen, under another sensor, and adapting to them")
    chips = see_chips(folder / "abroad", folder / "run", views=4, progress=listener.progress)
    approaches: list[Approach] = []
    adaptations = {}
    for loss in LOSSES:
        run = run_of(folder, loss)
        adapted, adaptations[loss] = adapted_approach(chips, run, loss)
        approaches += [cosine_approach(chips, run, loss), ratio_approach(chips, run, loss), adapted]
    listener.note(difference(approach_of(approaches, "glrt", ADAPTED), approach_of(approaches, "glrt", RATIO)))
    adaptations["glrt"].metric.save(folder / "adapted", overwrite=True)
    return approaches, adaptations["glrt"]


def _observer(listener: Listener) -> Observer:
    def on_step(step: Step) -> None:
        listener.progress(step.epoch * step.steps + step.step + 1, step.epochs * step.steps, "steps")

    return Observer(reading=listener.progress, step=on_step, note=listener.note)


def _provenance(seconds: float, *, again: bool) -> str:
    now = datetime.now().astimezone().isoformat(" ", "minutes")
    used = ", with what was there from before" if again else ""
    return f"Made at {now} with lookdown {version('lookdown')}, in {seconds:.0f} seconds{used}."


def _commands(program: str, folder: Path, example: Path) -> list[str]:
    gallery, run = str(folder / "gallery"), str(folder / "run")
    lines = (
        ("serve", gallery),
        ("search", gallery, str(example), "--turned", "--html", "hits.html", "--geojson", "hits.geojson"),
        ("evaluate", run, "--adapted", str(folder / "adapted"), "--data", str(folder / "abroad")),
        ("index", run, "YOUR_IMAGES", "-o", str(folder / "yours")),
    )
    return [shlex.join((program, *line)) for line in lines]
