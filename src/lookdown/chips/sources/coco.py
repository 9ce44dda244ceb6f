"""COCO: a JSON file of images, annotations and categories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lookdown.chips.sources import Crop, Polygon, Scene, SourceContent, box_polygon
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> SourceContent:
    """Read every COCO file in `root` (or `root` itself); take the polygon of an object if it has one, else its box."""
    files = [root] if root.is_file() else sorted(root.glob("*.json")) + sorted(root.glob("annotations/*.json"))
    content = SourceContent()
    for file in files:
        try:
            _add(content, file, root.parent if root.is_file() else root)
        except (KeyError, TypeError) as error:
            raise SourceError(f"{file} has an image or category without its fields: {error!r}") from error
    if not content.scenes:
        raise SourceError(f"{root} holds no COCO file with images in it; give the folder that holds annotations.json")
    return content


def _add(content: SourceContent, file: Path, root: Path) -> None:
    try:
        coco: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is not JSON in UTF-8: {error}; give the file of annotations") from error
    if not isinstance(coco, dict) or not {"images", "annotations", "categories"} <= set(coco):
        raise SourceError(f"{file} has no images, annotations and categories; it is not a COCO file")
    labels = {category["id"]: str(category["name"]) for category in coco["categories"]}
    images = {}
    for image in coco["images"]:
        path = root / str(image["file_name"])
        if not path.resolve().is_relative_to(root.resolve()):
            content.skip(f"{file.name}, image {image['id']}", f"{path} is not below {root}")
            continue
        name = images[image["id"]] = Path(str(image["file_name"])).as_posix()
        content.scenes[name] = Scene(name=name, path=path)
    for annotation in coco["annotations"]:
        try:
            scene = images[annotation["image_id"]]
            key, label = f"{scene}:{file.stem}:{annotation['id']}", labels[annotation["category_id"]]
            content.crops.append(Crop(id=key, scene=scene, polygon=_polygon(annotation), label=label))
        except (KeyError, TypeError, ValueError) as error:
            number = annotation.get("id") if isinstance(annotation, dict) else repr(annotation)
            content.skip(f"{file.name}, annotation {number}", f"it cannot be used: {error!r}")


def _polygon(annotation: dict[str, Any]) -> Polygon:
    outline = annotation.get("segmentation")
    if isinstance(outline, list) and len(outline) == 1 and len(outline[0]) >= 6:
        flat = [float(value) for value in outline[0]]
        return tuple(zip(flat[::2], flat[1::2], strict=True))
    left, top, width, height = (float(value) for value in annotation["bbox"])
    return box_polygon(left, top, left + width, top + height)
