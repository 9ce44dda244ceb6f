"""An archive of chips and whole scenes, searched by an example; what stands in it is known, so hits can be judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import shapely

from lookdown.chips.manifest import Manifest
from lookdown.chips.sources import Crop, SourceContent, read_source
from lookdown.gallery import Cutting, Gallery, Hit, Results, Where
from lookdown.gallery.index.creation import gallery_of_run
from lookdown.lab.demo.demo_worlds import TRAINED
from lookdown.progress import Progress

__all__ = ["AcceptedHits", "SceneSearch", "accept", "build_gallery", "search_scenes"]

_WINDOWS = (64, 128)  # pixels: an aircraft at half a metre a pixel, a ship at one


@dataclass(frozen=True, slots=True)
class SceneSearch:
    """A scene, examples of a kind that it shows, and the best hits for them: as many as there are objects."""

    scene: Path
    kind: str
    examples: list[Path]
    hits: tuple[Hit, ...]
    right: tuple[bool, ...]
    objects: tuple[shapely.Polygon, ...]  # all of that kind, in pixels of the scene

    @property
    def missed(self) -> tuple[shapely.Polygon, ...]:
        """Objects that no hit shows."""
        windows = [shapely.from_wkt(hit.polygon) for hit in self.hits]
        return tuple(one for one in self.objects if not any(window.covers(one.centroid) for window in windows))


@dataclass(frozen=True, slots=True)
class AcceptedHits:
    """What a false-alarm rate accepts of the whole archive for one example, and how many of that are of its kind."""

    kind: str
    results: Results
    right: int

    @property
    def false(self) -> int:
        """Hits of another kind, or of none."""
        return len(self.results) - self.right


def build_gallery(folder: Path, progress: Progress) -> Gallery:
    """Put the searched chips of the first world and its scenes into a gallery; what is there is left alone."""
    gallery = gallery_of_run(folder / "gallery", folder / "run")
    world = folder / "world"
    gallery.add([Manifest.read(world), world / "scenes"], cutting=Cutting(windows=_WINDOWS), progress=progress)
    return gallery


def search_scenes(gallery: Gallery, world: Path) -> list[SceneSearch]:
    """Search each scene for the trained kind that most often stands in it and fills half a window at least."""
    standing = _standing(world)
    return [_search_scene(gallery, world, path, standing) for path in sorted((world / "scenes").glob("*.tif"))]


def accept(gallery: Gallery, world: Path, rate: float) -> list[AcceptedHits]:
    """Return all that a rate accepts for one example of each kind, the first of its queries."""
    standing = _standing(world)
    accepted = []
    for kind in TRAINED:
        results = gallery.search(_examples(world, kind)[0], false_alarm_rate=rate, overlap=1)  # rates are of windows
        accepted.append(AcceptedHits(kind, results, sum(_shows(hit, kind, standing) for hit in results.hits)))
    return accepted


def _search_scene(gallery: Gallery, world: Path, path: Path, standing: SourceContent) -> SceneSearch:
    here = [item for item in standing.crops if Path(item.scene).stem == path.stem]
    large = Counter(item.label for item in here if item.label in TRAINED and _side(item) >= min(_WINDOWS) / 2)
    kind = str(min(large, key=lambda name: (-large[name], str(name))))
    examples = _examples(world, kind)
    where = Where(scene=f"{path.parent.name}/{path.name}")
    objects = tuple(_polygon(item) for item in here if item.label == kind)
    hits = gallery.search(examples, k=len(objects), where=where, turned=True).hits
    return SceneSearch(path, kind, examples, hits, tuple(_shows(hit, kind, standing) for hit in hits), objects)


def _standing(world: Path) -> SourceContent:
    """Return what stands in the scenes, in their pixels."""
    return read_source("geojson", world / "scenes", label="label")


def _examples(world: Path, kind: str) -> list[Path]:
    queries = Manifest.read(world).with_role("query")
    return [path for path, label in zip(queries.paths, queries.labels, strict=True) if label == kind]


def _shows(hit: Hit, kind: str, standing: SourceContent) -> bool:
    """Whether a chip is labelled so, or a window holds the middle of such an object."""
    if hit.polygon is None or hit.label is not None or hit.background:
        return hit.label == kind
    window, stem = shapely.from_wkt(hit.polygon), Path(hit.scene).stem
    return any(
        window.covers(_polygon(item).centroid)
        for item in standing.crops
        if item.label == kind and Path(item.scene).stem == stem
    )


def _polygon(item: Crop) -> shapely.Polygon:
    return shapely.Polygon(item.polygon)


def _side(item: Crop) -> float:
    west, north, east, south = _polygon(item).bounds
    return float(max(east - west, south - north))
