"""DOTA: `labelTxt/*.txt` with eight numbers, a class and a difficulty a line, beside `images/`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lookdown.chips.annotations import Annotated, Marked, Scene, Skipped
from lookdown.chips.sources.voc import image_of
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> Annotated:
    """Read every label file; `gsd:` in its head is taken over, `imagesource:` becomes the sensor."""
    folder = root / "labelTxt"
    if not folder.is_dir():
        raise SourceError(f"{folder} is missing; give the folder that holds labelTxt and images as ROOT")
    found = Annotated()
    for file in sorted(folder.glob("*.txt")):
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            found.skipped.append(Skipped(file.name, f"it cannot be read as UTF-8: {error}"))
            continue
        scene = Scene(name=file.stem, path=image_of(file.stem, root / "images"))
        for number, line in enumerate(lines, start=1):
            if line.startswith("imagesource:"):
                scene = replace(scene, sensor=line.partition(":")[2].strip() or None)
            elif line.startswith("gsd:"):
                scene = replace(scene, gsd=_gsd(line.partition(":")[2]))
            elif line.strip():
                _add(found, file, number, line.split())
        found.scenes[file.stem] = scene
    return found


def _add(found: Annotated, file: Path, number: int, words: list[str]) -> None:
    try:
        numbers = [float(word) for word in words[:8]]
        corners = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        if len(corners) != 4 or len(words) < 9:
            raise ValueError("a line has eight numbers, a class and a difficulty")
    except ValueError as error:
        found.skipped.append(Skipped(f"{file.name}, line {number}", str(error)))
        return
    found.marked.append(Marked(id=f"{file.stem}_{number:05d}", scene=file.stem, polygon=corners, label=words[8]))


def _gsd(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # DOTA writes `null` where it is not known
        return None
