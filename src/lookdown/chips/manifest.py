"""The one table that everything downstream reads: a row a chip."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import shapely
from numpy.typing import NDArray

from lookdown.atomic import replacing
from lookdown.errors import ManifestError

__all__ = ["ROLES", "SCHEMA", "Manifest"]

ROLES = ("train", "query", "gallery")
SCHEMA = pa.schema([
    pa.field("id", pa.string(), nullable=False),
    pa.field("path", pa.string(), nullable=False),  # below the root
    pa.field("scene", pa.string(), nullable=False),
    pa.field("polygon", pa.string()),  # WKT, pixels in the scene; empty where the chip is the whole image
    pa.field("label", pa.string()),
    pa.field("role", pa.string(), nullable=False),
    pa.field("background", pa.bool_(), nullable=False),
    pa.field("scene_group", pa.string(), nullable=False),
    pa.field("footprint", pa.string()),  # WKT, degrees of longitude and latitude (WGS84)
    pa.field("time", pa.string()),  # ISO 8601
    pa.field("sensor", pa.string()),
    pa.field("gsd", pa.float64()),  # metres a pixel
])  # fmt: skip
_ROOT = b"lookdown.root"  # the key of the root in the metadata of the file
_LISTED_PROBLEMS = 5
_POLYGON = re.compile(r"\s*POLYGON", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A table of chips: their files, scenes, classes and roles, and where they lie on Earth.

    table: a row a chip, with the columns of `lookdown.chips.manifest.SCHEMA`.
    root: the folder that the column `path` starts from.

    >>> import lookdown
    >>> from pathlib import Path
    >>> chip = {"id": "7", "path": "7.jpg", "scene": "port", "role": "gallery", "background": False}
    >>> chip |= {"label": "tanker", "scene_group": "port"}
    >>> manifest = lookdown.Manifest.of_rows([chip], Path("chips"))
    >>> len(manifest), manifest.labels, manifest.paths[0].as_posix(), len(manifest.with_role("train"))
    (1, ['tanker'], 'chips/7.jpg', 0)
    """

    table: pa.Table
    root: Path

    @classmethod
    def of_rows(cls, rows: Iterable[dict[str, Any]], root: Path) -> Self:
        """Build a manifest from one mapping a chip; columns that a mapping lacks are empty."""
        return cls(pa.Table.from_pylist(list(rows), schema=SCHEMA), root)

    @classmethod
    def read(cls, path: str | Path, *, root: str | Path | None = None, check_files: bool = True) -> Self:
        """Read and check a manifest.

        path: a Parquet file, a CSV with the same columns, or the folder that holds `manifest.parquet`.
        root: the folder of the chips; by default the one recorded in the file, else the folder of the file.
        check_files: refuse the manifest if a chip is missing.
        """
        file = Path(path)
        file = file / "manifest.parquet" if file.is_dir() else file
        table, recorded = _read_table(file)
        manifest = cls(table, Path(root) if root else file.parent / recorded)
        _refuse(_problems(table), file)
        if check_files:
            _refuse(manifest._missing_files(), file)
        return manifest

    def write(self, file: Path) -> None:
        """Check the table and write it as Parquet."""
        _refuse(_problems(self.table), file)
        relative = self.root.resolve() == file.parent.resolve()
        root = "." if relative else str(self.root.resolve())
        table = self.table.replace_schema_metadata({_ROOT: root.encode()})
        with replacing(file) as temporary:
            pyarrow.parquet.write_table(table, temporary)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def paths(self) -> list[Path]:
        """The files of the chips."""
        return [self.root / path for path in self.table["path"].to_pylist()]

    @property
    def labels(self) -> list[str | None]:
        """The class of each chip, None where it is unknown."""
        return list(self.table["label"].to_pylist())

    @property
    def groups(self) -> list[str]:
        """The scene group of each chip."""
        return list(self.table["scene_group"].to_pylist())

    @property
    def background(self) -> NDArray[np.bool_]:
        """Which chips show none of the objects."""
        return np.asarray(self.table["background"].to_pylist(), dtype=np.bool_)

    def with_role(self, *roles: str) -> Manifest:
        """Return the chips with one of these roles."""
        return Manifest(self.table.filter(pc.is_in(self.table["role"], pa.array(roles))), self.root)

    def _missing_files(self) -> list[str]:
        problems = []
        root = self.root.resolve()
        for row, path in enumerate(self.paths):
            if not path.is_file():
                problems.append(f"row {row} (id {self.table['id'][row]}): {path} is missing")
            elif path.is_symlink() and not path.resolve().is_relative_to(root):
                problems.append(f"row {row} (id {self.table['id'][row]}): {path} is a link out of the root")
        return problems


def _read_table(file: Path) -> tuple[pa.Table, str]:
    try:
        if file.suffix.lower() == ".csv":
            # With types, so that a class called 007 or a scene called 1e5 stays what it is.
            types = {field.name: field.type for field in SCHEMA}
            options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
            blocks = pa.csv.ReadOptions(block_size=1 << 22)  # other columns get the type of their first block
            table = pyarrow.csv.read_csv(file, blocks, convert_options=options)
        else:
            table = pyarrow.parquet.read_table(file)
    except FileNotFoundError as error:
        raise ManifestError(f"{file} is missing; run `lookdown prepare`, or name a manifest") from error
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ManifestError(
            f"{file} cannot be read: {reason}; name a manifest that `lookdown prepare` wrote"
        ) from error
    absent = [field.name for field in SCHEMA if not field.nullable and field.name not in table.column_names]
    if absent:
        there = ", ".join(table.column_names)
        raise ManifestError(f"{file} has no column {', '.join(absent)}; its columns are {there}")
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type) for field in SCHEMA
    ]
    try:
        whole = pa.table(columns, names=SCHEMA.names).cast(pa.schema([f.with_nullable(True) for f in SCHEMA]))
    except pa.ArrowException as error:
        raise ManifestError(f"{file} has a column of the wrong type: {str(error).splitlines()[0]}") from error
    return whole, (table.schema.metadata or {}).get(_ROOT, b".").decode("utf-8", "replace")


def _refuse(problems: list[str], file: Path) -> None:
    if problems:
        listed = "; ".join(problems[:_LISTED_PROBLEMS])
        more = f"; and {len(problems) - _LISTED_PROBLEMS} more" if len(problems) > _LISTED_PROBLEMS else ""
        raise ManifestError(f"{file} cannot be used: {listed}{more}. Correct these rows, or prepare the data again")


def _problems(table: pa.Table) -> list[str]:
    if not len(table):
        return ["it has no rows"]
    first: dict[str | None, int] = {}
    problems = [
        f"row {row}: id {name} stands in row {first[name]} already"
        for row, name in enumerate(table["id"].to_pylist())
        if first.setdefault(name, row) != row
    ]
    required = [field.name for field in SCHEMA if not field.nullable]
    # Only polygons are parsed: the WKT parser recurses into nested collections until the process dies.
    written = table["polygon"].to_pylist()
    texts = [text if text and text.isascii() and _POLYGON.match(text) else None for text in written]
    with np.errstate(all="ignore"):  # a coordinate may be NaN
        polygons = shapely.from_wkt(np.array(texts, dtype=object), on_invalid="ignore")
    for row, chip in enumerate(table.to_pylist()):
        where = f"row {row} (id {chip['id']})"
        if absent := [name for name in required if chip[name] is None]:
            problems.append(f"{where}: {', '.join(absent)} is empty")
            continue
        if chip["role"] not in ROLES:
            problems.append(f"{where}: role {chip['role']!r} is not one of {', '.join(ROLES)}")
        if reason := _unsafe(chip["path"]):
            problems.append(f"{where}: path {chip['path']!r} {reason}")
        if chip["polygon"] and (polygons[row] is None or polygons[row].geom_type != "Polygon"):
            problems.append(f"{where}: polygon {chip['polygon'][:40]!r} is not a WKT polygon")
    return problems


def _unsafe(path: str) -> str | None:
    """Return why a path is refused, if it is: a table from a stranger must not reach files outside its folder."""
    if path.startswith("/vsi") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        return "is not a file below the root"
    if path.lower().endswith(".vrt"):
        return "is a virtual raster, which may point anywhere"
    if Path(path).is_absolute() or ".." in Path(path).parts:
        return "leads out of the root"
    return None
