"""MAR20, military aircraft in 20 classes, in its original layout; `scene_groups.csv` is read if it is there."""

from __future__ import annotations

from pathlib import Path

from lookdown.chips.sources import SourceContent, voc
from lookdown.chips.sources.folder import read_columns

__all__ = ["read"]


def read(root: Path, *, oriented: bool = False) -> SourceContent:
    """Read the horizontal boxes, or the oriented ones."""
    folder = "Oriented Bounding Boxes" if oriented else "Horizontal Bounding Boxes"
    table = root / "scene_groups.csv"
    rows = read_columns(table, ("image", "scene_group")) if table.is_file() else []
    groups = {row["image"]: row["scene_group"] for row in rows}
    return voc.read_folder(root / "Annotations" / folder, root / "JPEGImages", groups)
