"""DOTA: `labelTxt/*.txt` with eight numbers, a class and a difficulty a line, beside `images/`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lookdown.chips.sources import Crop, Scene, SourceContent
from lookdown.chips.sources.voc import image_of
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> SourceContent:
    """Read every label file; its first lines may give the resolution (`gsd:`) and the sensor (`imagesource:`)."""
    folder = root / "labelTxt"
    if not folder.is_dir():
        raise SourceError(f"{folder} is missing; give the folder that holds labelTxt and images as `root`")
    content = SourceContent()
    for file in sorted(folder.glob("*.txt")):
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            content.skip(file.name, f"it cannot be read as UTF-8: {error}")
            continue
        scene = Scene(name=file.stem, path=image_of(file.stem, root / "images"))
        for number, line in enumerate(lines, start=1):
            if line.startswith("imagesource:"):
                scene = replace(scene, sensor=line.partition(":")[2].strip() or None)
            elif line.startswith("gsd:"):
                scene = replace(scene, gsd=_gsd(line.partition(":")[2]))
            elif line.strip():
                try:
                    content.crops.append(_crop(file.stem, number, line.split()))
                except ValueError as error:
                    content.skip(f"{file.name}, line {number}", str(error))
        content.scenes[file.stem] = scene
    return content


def _crop(scene: str, number: int, words: list[str]) -> Crop:
    numbers = [float(word) for word in words[:8]]
    if len(words) < 9:
        raise ValueError("a line has eight numbers, a class and a difficulty")
    corners = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return Crop(id=f"{scene}_{number:05d}", scene=scene, polygon=corners, label=words[8])


def _gsd(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # DOTA writes `null` where it is unknown
        return None
