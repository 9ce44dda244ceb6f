"""COCO: a JSON file of images, annotations and categories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lookdown.chips.annotations import Annotated, Marked, Polygon, Scene, Skipped
from lookdown.chips.sources.voc import box
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> Annotated:
    """Read every COCO file in `root` (or `root` itself); polygons where they are given, else boxes."""
    files = [root] if root.is_file() else sorted(root.glob("*.json")) + sorted(root.glob("annotations/*.json"))
    found = Annotated()
    for file in files:
        try:
            _add(found, file, root.parent if root.is_file() else root)
        except (KeyError, TypeError) as error:
            raise SourceError(f"{file} has an image or category without its fields: {error!r}") from error
    if not found.scenes:
        raise SourceError(f"{root} holds no COCO file with images in it; give the folder that holds annotations.json")
    return found


def _add(found: Annotated, file: Path, root: Path) -> None:
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is not JSON in UTF-8: {error}; give the file of annotations") from error
    if not isinstance(content, dict) or not {"images", "annotations", "categories"} <= set(content):
        raise SourceError(f"{file} has no images, annotations and categories; it is not a COCO file")
    names = {category["id"]: str(category["name"]) for category in content["categories"]}
    images = {}
    for image in content["images"]:
        path = root / str(image["file_name"])
        if not path.resolve().is_relative_to(root.resolve()):
            found.skipped.append(Skipped(f"{file.name}, image {image['id']}", f"{path} leads out of {root}"))
            continue
        name = Path(str(image["file_name"])).as_posix()
        images[image["id"]] = name
        found.scenes[name] = Scene(name=name, path=path)
    for annotation in content["annotations"]:
        item = f"{file.name}, annotation {annotation.get('id') if isinstance(annotation, dict) else annotation!r}"
        try:
            marked = Marked(
                id=f"{images[annotation['image_id']]}:{file.stem}:{annotation['id']}",
                scene=images[annotation["image_id"]],
                polygon=_corners(annotation),
                label=names[annotation["category_id"]],
            )
        except (KeyError, TypeError, ValueError) as error:
            found.skipped.append(Skipped(item, f"it cannot be used: {error!r}"))
        else:
            found.marked.append(marked)


def _corners(annotation: dict[str, Any]) -> Polygon:
    outline = annotation.get("segmentation")
    if isinstance(outline, list) and len(outline) == 1 and len(outline[0]) >= 6:
        flat = [float(value) for value in outline[0]]
        return tuple(zip(flat[::2], flat[1::2], strict=True))
    left, top, width, height = (float(value) for value in annotation["bbox"])
    return box(left, top, left + width, top + height)
