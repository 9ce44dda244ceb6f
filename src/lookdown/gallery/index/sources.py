"""What can be put into a gallery: manifests, images, folders of images, and scenes, as groups of chips."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

from lookdown.chips.imagery import SUFFIXES, TIFF, SceneReader, open_scene
from lookdown.chips.manifest import Manifest
from lookdown.chips.photographs import jpeg_size, open_photograph
from lookdown.chips.pixels import Chip, read_chip
from lookdown.chips.sources import polygon_wkt, windows
from lookdown.errors import ImageError, InputError, SourceError
from lookdown.gallery.index.thumbnails import MAX_OWN_BYTES, own_thumbnail
from lookdown.gallery.store.timestamps import earliest

__all__ = ["ChipGroup", "Cutting", "Images", "Row", "chip_groups"]

Images: TypeAlias = str | Path | Manifest | Sequence[str | Path | Manifest]
Row = dict[str, Any]  # columns of the table without the embedding; with a thumbnail if the file can serve as one

_JPEG = frozenset({".jpeg", ".jpg"})
_SUFFIXES = tuple(SUFFIXES)
_GROUP_IMAGES = 512  # whole images in a group
_HEADER_BYTES = 4_096  # bytes of a JPEG that contain its size, unless a camera has written long metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How images are cut into chips; manifests list their chips already."""

    windows: Sequence[int] = (64,)  # sides of the windows of a scene, in pixels
    strides: Sequence[int] | None = None  # steps between windows in pixels; by default half their side
    scene_side: int = 512  # an image whose longer side has more pixels is a scene, a smaller one a chip
    whole: bool = False  # take every image as one chip
    classes: bool = False  # the subfolder that an image is in names its kind
    time: str | None = None  # when images without a time of their own were taken, ISO 8601
    sensor: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.windows, int) or isinstance(self.strides, int):
            raise InputError("windows and strides are lists of numbers; put a single number into a list")
        if not self.windows or not all(isinstance(side, int) and side >= 8 for side in self.windows):
            raise InputError(f"windows must have sides of at least 8 pixels, got {list(self.windows)}")
        if self.strides is not None and len(self.strides) not in (1, len(self.windows)):
            raise InputError(f"give one stride for all windows or one for each, got {len(self.strides)}")
        if not all(isinstance(step, int) and step >= 1 for step in self.strides or ()):
            raise InputError(f"strides must be at least 1 pixel, got {list(self.strides or ())}")
        if self.scene_side < 1:
            raise InputError(f"scene_side must be at least 1 pixel, got {self.scene_side}")
        if self.time is not None:
            earliest(self.time, "time")  # refuses a time that no filter could match


@dataclass(frozen=True, slots=True)
class ChipGroup(ABC):
    """Chips that are read together."""

    rows: list[Row]
    skipped: dict[str, str] = field(default_factory=dict)  # the reason for each file that gives no chips
    named_by_path: bool = True  # ids come from file names, so two files may have the same id
    of_one_scene: bool = False  # windows of one image, which look alike and are read one by one

    @abstractmethod
    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        """Yield the positions that are wanted with their pixels, or with the error that reading them gave.

        side: as for `read_chip`.

        What else the file says about a chip is added to its row.
        """

    def only(self, wanted: Sequence[int]) -> Self:
        """Return a group with only the chips at these positions."""
        return replace(self, rows=[self.rows[position] for position in wanted], skipped={})


def chip_groups(images: Images, cutting: Cutting, *, every_role: bool = False) -> Iterator[ChipGroup]:
    """Yield the chips of manifests, of folders with all images below them, and of single images, in a fixed order.

    A path that does not exist is refused at once, before hours of work.

    every_role: take all chips of a manifest with roles, not only those for the gallery. Chips that a metric was trained
        on score better than others.
    """
    several: list[Any] = [*images] if isinstance(images, list | tuple) else [images]
    sources = [source if isinstance(source, Manifest) else _opened(Path(source)) for source in several]
    return (group for source in sources for group in _groups(source, cutting, every_role))


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


def _groups(source: Manifest | Path, cutting: Cutting, every_role: bool) -> Iterator[ChipGroup]:
    if isinstance(source, Manifest):
        gallery = source.with_role("gallery")
        yield from _of_manifest(gallery if len(gallery) and not every_role else source)
        return
    path = Path(os.path.abspath(source))  # noqa: PTH100  # without dots, and with links unresolved
    chips: list[Row] = []
    for file in [_File(path.name, path.parent.resolve() / path.name)] if path.is_file() else _images(path):
        if not cutting.whole and (scene := _as_scene(file, cutting)):
            yield scene
        else:
            chips.append(_row(file, cutting, file.label if cutting.classes else None))
        if len(chips) == _GROUP_IMAGES:
            yield _Images(chips)
            chips = []
    if chips:
        yield _Images(chips)


@dataclass(frozen=True, slots=True)
class _File:
    """An image: its name below the folder that was given, and its path with links resolved."""

    name: str
    path: Path
    label: str | None = None


def _images(folder: Path) -> Iterator[_File]:
    """Yield all images below a folder, sorted by name within each folder; links to folders are followed."""
    seen = set()
    for base, folders, names in os.walk(folder, followlinks=True):
        here = Path(base).resolve()
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if here not in seen else []
        if here in seen:  # a link that leads back
            continue
        seen.add(here)
        below = Path(base).relative_to(folder)
        label = below.parts[0] if below.parts else None
        before = (Path(folder.name) / below / "_").as_posix().removesuffix("_")  # once a folder, because paths are slow
        for name in sorted(names):
            if name.lower().endswith(_SUFFIXES) and not name.startswith(".") and (path := here / name).is_file():
                yield _File(before + name, path, label)


def _of_manifest(manifest: Manifest) -> Iterator[ChipGroup]:
    columns = ("id", "scene", "polygon", "label", "background", "scene_group", "footprint", "time", "sensor", "gsd")
    root = manifest.root.resolve()
    for begin in range(0, len(manifest), _GROUP_IMAGES):
        chips = manifest.table.slice(begin, _GROUP_IMAGES).to_pylist()
        rows = [{**{name: chip[name] for name in columns}, "source": str(root / chip["path"])} for chip in chips]
        yield _Images(rows, named_by_path=False)


@dataclass(frozen=True, slots=True)
class _Images(ChipGroup):
    """Images that are chips as a whole."""

    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        for position in wanted:
            try:
                yield position, self._read(self.rows[position], side)
            except ImageError as error:
                yield position, error

    @staticmethod
    def _read(row: Row, side: int | None) -> Chip:
        path = Path(row["source"])
        content = _small_jpeg(path)
        pixels = read_chip(path, side=side, content=content)
        if row["footprint"] is None and path.suffix.lower() in TIFF:
            with open_scene(path) as scene:
                row["footprint"] = scene.footprint(_corners(0, 0, scene.width, scene.height))
                row["gsd"] = scene.gsd if row["gsd"] is None else row["gsd"]
        if content is not None and (own := own_thumbnail(content)):  # the bytes that were decoded
            row["thumbnail"] = own
        return pixels


@dataclass(frozen=True, slots=True)
class _Windows(ChipGroup):
    """Windows of one scene."""

    path: Path = Path()
    boxes: list[tuple[int, int, int, int]] = field(default_factory=list)

    def pixels(self, wanted: Sequence[int], side: int | None = None) -> Iterator[tuple[int, Chip | ImageError]]:
        try:
            with open_scene(self.path) as scene:
                for position in wanted:
                    yield position, self._cut(scene, position)
        except ImageError as error:  # the scene could not be opened
            for position in wanted:
                yield position, error

    def only(self, wanted: Sequence[int]) -> Self:
        rows, boxes = [self.rows[position] for position in wanted], [self.boxes[position] for position in wanted]
        return replace(self, rows=rows, skipped={}, boxes=boxes)

    def _cut(self, scene: SceneReader, position: int) -> Chip | ImageError:
        box = self.boxes[position]
        self.rows[position].update(footprint=scene.footprint(_corners(*box)), gsd=scene.gsd)
        try:
            return scene.read(box)
        except ImageError as error:
            return error


def _as_scene(file: _File, cutting: Cutting) -> ChipGroup | None:
    """Return the windows of an image that is a scene; None for a chip, or if the image cannot be opened."""
    try:
        if max(_size(file.path)) <= cutting.scene_side:
            return None
        cut = windows.read(file.path, size=list(cutting.windows), stride=cutting.strides and list(cutting.strides))
    except (ImageError, OSError):
        return None  # reading it as a chip reports what is wrong
    row = _row(file, cutting)
    rows, boxes = [], []
    for marked in cut.crops:
        assert marked.polygon is not None
        (x0, y0), _, (x1, y1), _ = marked.polygon
        box = int(x0), int(y0), int(x1), int(y1)
        rows.append({**row, "id": f"{file.name}:{','.join(map(str, box))}", "polygon": polygon_wkt(marked.polygon)})
        boxes.append(box)
    reasons = "; ".join(item.reason for item in cut.skipped)
    return _Windows(rows, {str(file.path): reasons} if reasons else {}, of_one_scene=True, path=file.path, boxes=boxes)


def _size(path: Path) -> tuple[int, int]:
    if path.suffix.lower() in TIFF:
        with open_scene(path) as scene:
            return scene.width, scene.height
    if path.suffix.lower() in _JPEG and (head := _first_bytes(path, _HEADER_BYTES)) and (size := jpeg_size(head)):
        return size
    try:
        with open_photograph(path) as image:
            return image.size
    except Exception as error:  # decoders raise a dozen kinds of error for broken files
        raise ImageError(f"{path}: cannot be opened ({error})") from error


def _small_jpeg(path: Path) -> bytes | None:
    """Return the bytes of a JPEG that may serve as its own thumbnail."""
    if path.suffix.lower() not in _JPEG:
        return None
    content = _first_bytes(path, MAX_OWN_BYTES + 1)
    return content if 0 < len(content) <= MAX_OWN_BYTES else None


def _first_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""  # reading it reports what is wrong


def _row(file: _File, cutting: Cutting, label: str | None = None) -> Row:
    return {
        "id": file.name,
        "source": str(file.path),
        "scene": file.name,
        "scene_group": file.name,
        **dict.fromkeys(("polygon", "footprint", "gsd")),
        "label": None if label == "background" else label,
        "background": label == "background",
        "time": cutting.time,
        "sensor": cutting.sensor,
    }


def _corners(x0: int, y0: int, x1: int, y1: int) -> tuple[tuple[int, int], ...]:
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)
