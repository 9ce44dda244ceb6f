"""MAR20, military aircraft in 20 classes, in its original layout; `scene_groups.csv` is read where there is one."""

from __future__ import annotations

from pathlib import Path

from lookdown.chips.annotations import Annotated
from lookdown.chips.sources import voc
from lookdown.chips.sources.folder import read_columns

__all__ = ["read"]


def read(root: Path, *, oriented: bool = False) -> Annotated:
    """Read the horizontal boxes, or the oriented ones."""
    folder = "Oriented Bounding Boxes" if oriented else "Horizontal Bounding Boxes"
    return voc.read_folder(root / "Annotations" / folder, root / "JPEGImages", read_groups(root / "scene_groups.csv"))


def read_groups(file: Path) -> dict[str, str]:
    """Return the group of each image, from a CSV with the columns image and scene_group; none where it is absent."""
    if not file.is_file():
        return {}
    return {row["image"]: row["scene_group"] for row in read_columns(file, ("image", "scene_group"))}
