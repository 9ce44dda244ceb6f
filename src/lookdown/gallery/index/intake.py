"""What can be put into a gallery: manifests, images, folders of them, and scenes, as chips part by part."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from lookdown.chips.imagery import SUFFIXES, TIFF, SceneReader, open_scene
from lookdown.chips.jpegs import size_of
from lookdown.chips.manifest import Manifest, polygon_wkt
from lookdown.chips.photographs import open_photograph
from lookdown.chips.reading import Chip, read_chip
from lookdown.chips.sources import windows
from lookdown.errors import ImageError, InputError, SourceError
from lookdown.gallery.index.thumbnails import LARGEST, own_thumbnail
from lookdown.gallery.store.timestamps import earliest

__all__ = ["Cutting", "Part", "parts_of"]

Row = dict[str, Any]  # columns of the table, without the embedding; with a thumbnail where the file is one already

_JPEG = frozenset({".jpeg", ".jpg"})
_SUFFIXES = tuple(SUFFIXES)
_TOGETHER = 512  # whole images in a part
_HEAD = 4_096  # bytes of a JPEG that tell its size, unless a camera has noted more


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How images that are no manifest are taken."""

    windows: Sequence[int] = (64,)  # sides of the windows that scenes are cut into, in pixels
    strides: Sequence[int] | None = None  # between windows; half their side
    scene_side: int = 512  # an image whose longer side has more pixels is a scene, a smaller one a chip
    whole: bool = False  # take every image as one chip
    classes: bool = False  # the folder that an image lies in, right below the one given, is its class
    time: str | None = None  # of images that do not know theirs, ISO 8601
    sensor: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.windows, int) or isinstance(self.strides, int):
            raise InputError("windows and strides are lists; put the one number into one")
        if not self.windows or not all(isinstance(side, int) and side >= 8 for side in self.windows):
            raise InputError(f"windows must have sides of at least 8 pixels, got {list(self.windows)}")
        if self.strides is not None and len(self.strides) not in (1, len(self.windows)):
            raise InputError(f"give one stride for all windows or one for each, got {len(self.strides)}")
        if not all(isinstance(step, int) and step >= 1 for step in self.strides or ()):
            raise InputError(f"strides must be at least 1 pixel, got {list(self.strides or ())}")
        if self.scene_side < 1:
            raise InputError(f"scene_side must be at least 1 pixel, got {self.scene_side}")
        if self.time is not None:
            earliest(self.time, "time")  # refuses what no filter could ever find


@dataclass(frozen=True, slots=True)
class Part(ABC):
    """Some chips that are read together."""

    rows: list[Row]
    skipped: dict[str, str] = field(default_factory=dict)  # what the part could not offer, with the reason
    named_by_path: bool = True  # ids come from names of files, so that two files may have the same
    of_one_scene: bool = False  # windows of one image, which look alike

    @abstractmethod
    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        """Read some of the chips, each as pixels or as the reason why there are none; `side` as `read_chip` takes it.

        What else the file tells of a chip goes into its row.
        """

    def only(self, wanted: Sequence[int]) -> Self:
        """Return some of the chips, as a part of their own."""
        return replace(self, rows=[self.rows[place] for place in wanted], skipped={})


def parts_of(given: Sequence[str | Path | Manifest], cutting: Cutting, *, every_role: bool = False) -> Iterator[Part]:
    """Yield the chips of manifests, folders (all images below), and single images, in a fixed order.

    Of a manifest with roles only the gallery is taken, unless `every_role`: what a metric was trained on would flatter
    it. What does not exist is refused at once, before hours of work.
    """
    sources = [source if isinstance(source, Manifest) else _opened(Path(source)) for source in given]
    return (part for source in sources for part in _parts(source, cutting, every_role))


def _opened(path: Path) -> Manifest | Path:
    if not os.path.exists(path):  # noqa: PTH110  # Path.exists raises where a name is too long
        raise SourceError(f"{path} does not exist; give a manifest, an image, or a folder of images")
    if path.suffix.lower() in (".parquet", ".csv") or (path / "manifest.parquet").is_file():
        return Manifest.read(path, check_files=False)
    if path.is_file() and path.suffix.lower() not in SUFFIXES:
        raise SourceError(
            f"{path} is neither a manifest (.parquet, .csv) nor an image ({', '.join(sorted(SUFFIXES))}); convert it"
        )
    if path.is_dir() and not any(_images(path)):
        raise SourceError(f"{path} holds no image ({', '.join(sorted(SUFFIXES))}); give a folder that does")
    return path


def _parts(source: Manifest | Path, cutting: Cutting, every_role: bool) -> Iterator[Part]:
    if isinstance(source, Manifest):
        searched = source.with_role("gallery")
        yield from _of_manifest(searched if len(searched) and not every_role else source)
        return
    given = Path(os.path.abspath(source))  # noqa: PTH100  # without dots, and links as they are named
    chips: list[_File] = []
    for file in [_File.single(given)] if given.is_file() else _images(given):
        scene = None if cutting.whole else _as_scene(file, cutting)
        if scene is None:
            chips.append(file)
        else:
            yield scene
        if len(chips) == _TOGETHER:
            yield _Images([_whole(chip, cutting) for chip in chips])
            chips = []
    if chips:
        yield _Images([_whole(chip, cutting) for chip in chips])


@dataclass(frozen=True, slots=True)
class _File:
    """An image that was met: what it is called, below the folder given, and where it is, with no link on the way."""

    name: str
    path: Path
    label: str | None = None

    @classmethod
    def single(cls, path: Path) -> _File:
        return cls(path.name, path.parent.resolve() / path.name)


def _images(folder: Path) -> Iterator[_File]:
    """Yield all images below, folder by folder in the order of their names; folders that are links are entered."""
    seen = set()
    for base, folders, names in os.walk(folder, followlinks=True):
        here = Path(base).resolve()
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if here not in seen else []
        if here in seen:  # a link that leads back
            continue
        seen.add(here)
        below = Path(base).relative_to(folder)
        label = below.parts[0] if below.parts else None
        before = (Path(folder.name) / below / "_").as_posix().removesuffix("_")  # once a folder: paths take their time
        for name in sorted(names):
            if name.lower().endswith(_SUFFIXES) and not name.startswith(".") and (path := here / name).is_file():
                yield _File(before + name, path, label)


def _of_manifest(manifest: Manifest) -> Iterator[Part]:
    columns = ("id", "scene", "polygon", "label", "background", "scene_group", "footprint", "time", "sensor", "gsd")
    root = manifest.root.resolve()
    for begin in range(0, len(manifest), _TOGETHER):
        some = Manifest(manifest.table.slice(begin, _TOGETHER), manifest.root)
        rows = [
            {**{name: chip[name] for name in columns}, "source": str(root / chip["path"])}
            for chip in some.table.to_pylist()
        ]
        yield _Images(rows, named_by_path=False)


@dataclass(frozen=True, slots=True)
class _Images(Part):
    """Images that are chips as a whole."""

    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        for place in wanted:
            try:
                yield place, self._read(self.rows[place], side)
            except ImageError as error:
                yield place, error

    @staticmethod
    def _read(row: Row, side: int | None) -> Chip:
        path = Path(row["source"])
        content = _small_jpeg(path)
        pixels = read_chip(path, side=side, content=content)
        if row["footprint"] is None and path.suffix.lower() in TIFF:
            row |= {name: told for name, told in _place(path).items() if row[name] is None}
        if content is not None and (own := own_thumbnail(content)):  # the very bytes that could be decoded
            row["thumbnail"] = own
        return pixels


@dataclass(frozen=True, slots=True)
class _Windows(Part):
    """Windows of one scene."""

    path: Path = Path()
    boxes: list[tuple[int, int, int, int]] = field(default_factory=list)

    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        try:
            with open_scene(self.path) as scene:
                for place in wanted:
                    yield place, self._cut(scene, place)
        except ImageError as error:  # the scene could not even be opened
            for place in wanted:
                yield place, error

    def only(self, wanted: Sequence[int]) -> Self:
        rows, boxes = [self.rows[place] for place in wanted], [self.boxes[place] for place in wanted]
        return replace(self, rows=rows, skipped={}, boxes=boxes)

    def _cut(self, scene: SceneReader, place: int) -> Chip | ImageError:
        x0, y0, x1, y1 = self.boxes[place]
        row = self.rows[place]
        row |= {"footprint": scene.footprint(((x0, y0), (x1, y0), (x1, y1), (x0, y1))), "gsd": scene.gsd}
        try:
            return scene.read((x0, y0, x1, y1))
        except ImageError as error:
            return error


def _as_scene(file: _File, cutting: Cutting) -> Part | None:
    """Return the windows of an image that is larger than a chip; None for a chip, or what cannot be opened as one."""
    try:
        if max(_size(file.path)) <= cutting.scene_side:
            return None
        found = windows.read(file.path, size=list(cutting.windows), stride=cutting.strides and list(cutting.strides))
    except (ImageError, OSError):
        return None  # read as a chip it says what is wrong with it
    row = _row(file, cutting)
    rows, boxes = [], []
    for marked in found.crops:
        assert marked.polygon is not None
        (x0, y0), _, (x1, y1), _ = marked.polygon
        box = int(x0), int(y0), int(x1), int(y1)
        rows.append({**row, "id": f"{file.name}:{','.join(map(str, box))}", "polygon": polygon_wkt(marked.polygon)})
        boxes.append(box)
    told = "; ".join(item.reason for item in found.skipped)
    return _Windows(rows, {str(file.path): told} if told else {}, of_one_scene=True, path=file.path, boxes=boxes)


def _size(path: Path) -> tuple[int, int]:
    if path.suffix.lower() in TIFF:
        with open_scene(path) as scene:
            return scene.width, scene.height
    if path.suffix.lower() in _JPEG and (head := _first_bytes(path, _HEAD)) and (size := size_of(head)):
        return size
    try:
        with open_photograph(path) as image:
            return image.size
    except Exception as error:  # decoders meet broken files with a dozen kinds of error
        raise ImageError(f"{path}: cannot be opened ({error})") from error


def _small_jpeg(path: Path) -> bytes | None:
    """Return the bytes of a JPEG that may be its own picture."""
    if path.suffix.lower() not in _JPEG:
        return None
    content = _first_bytes(path, LARGEST + 1)
    return content if 0 < len(content) <= LARGEST else None


def _first_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""  # reading it says what is wrong with it


def _whole(file: _File, cutting: Cutting) -> Row:
    label = file.label if cutting.classes else None
    row = _row(file, cutting) | {"id": file.name, "polygon": None, "footprint": None, "gsd": None}
    return row | {"label": None if label == "background" else label, "background": label == "background"}


def _row(file: _File, cutting: Cutting) -> Row:
    return {
        "source": str(file.path),
        "scene": file.name,
        "scene_group": file.name,
        "label": None,
        "background": False,
        "time": cutting.time,
        "sensor": cutting.sensor,
    }


def _place(path: Path) -> Row:
    """Return where on Earth a GeoTIFF lies."""
    with open_scene(path) as scene:
        corners = ((0, 0), (scene.width, 0), (scene.width, scene.height), (0, scene.height))
        return {"footprint": scene.footprint(corners), "gsd": scene.gsd}
