"""The table that everything reads: what is written comes back, and what is wrong is named by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from lookdown.chips.manifest import SCHEMA, Manifest
from lookdown.chips.sources import polygon_wkt
from lookdown.errors import ManifestError


def rows(folder: Path, count: int = 4) -> list[dict[str, Any]]:
    (folder / "chips").mkdir(exist_ok=True)
    made = []
    for index in range(count):
        (folder / "chips" / f"{index}.jpg").write_bytes(b"x")
        made.append({
            "id": f"00{index}", "path": f"chips/{index}.jpg", "scene": "s1",
            "label": ["7", None, "a,b", 'q"'][index % 4],
            "role": ("train", "query", "gallery", "gallery")[index % 4], "background": index == 1,
            "scene_group": "1e5", "polygon": polygon_wkt(((0, 0), (4, 0.5), (4, 4))), "gsd": 0.5 * index,
        })  # fmt: skip
    return made


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    Manifest.of_rows(rows(tmp_path), tmp_path).write(tmp_path / "manifest.parquet")
    found = Manifest.read(tmp_path)
    assert found.table.column_names == SCHEMA.names
    assert found.labels == ["7", None, "a,b", 'q"']
    assert found.paths == [tmp_path / "chips" / f"{i}.jpg" for i in range(4)]
    assert found.background.tolist() == [False, True, False, False]
    assert len(found.with_role("query", "gallery")) == 3
    assert found.groups == ["1e5"] * 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chips", "manifest.parquet"]


def test_a_csv_is_read_with_names_left_as_they_are(tmp_path: Path) -> None:
    Manifest.of_rows(rows(tmp_path), tmp_path).write(tmp_path / "manifest.parquet")
    pyarrow.csv.write_csv(Manifest.read(tmp_path).table, tmp_path / "chips.csv")
    found = Manifest.read(tmp_path / "chips.csv")
    assert found.table.equals(Manifest.read(tmp_path).table.replace_schema_metadata(None))
    assert found.table["id"][1].as_py() == "001"


def test_a_minimal_csv_will_do(tmp_path: Path) -> None:
    rows(tmp_path)
    (tmp_path / "mine.csv").write_text(
        "id,path,scene,role,background,scene_group,extra\na,chips/0.jpg,s,gallery,false,g,1\n"
    )
    found = Manifest.read(tmp_path / "mine.csv")
    assert (found.labels, found.table["gsd"].to_pylist()) == ([None], [None])


def test_chips_may_lie_elsewhere_and_may_be_moved(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    Manifest.of_rows(rows(tmp_path / "data"), tmp_path / "data").write(tmp_path / "out" / "manifest.parquet")
    assert Manifest.read(tmp_path / "out").paths[0].is_file()
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(ManifestError, match=r"row 0 \(id 000\): .*0\.jpg is missing"):
        Manifest.read(tmp_path / "out")
    assert Manifest.read(tmp_path / "out", root=tmp_path / "moved").paths[0].is_file()
    assert len(Manifest.read(tmp_path / "out", check_files=False)) == 4


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("id", "000", "row 2: id 000 stands in row 0 already"),
        ("role", "test", r"row 2 \(id 002\): role 'test' is not one of train, query, gallery"),
        ("role", None, "role is empty"),
        ("path", "../secret.jpg", "leads out of the root"),
        ("path", "/etc/passwd", "leads out of the root"),
        ("path", "/vsicurl/http://x/y.tif", "is not a file below the root"),
        ("path", "http://x/y.tif", "is not a file below the root"),
        ("path", "c:\\x.jpg", "is not a file below the root"),
        ("path", "scene.VRT", "virtual raster"),
        ("path", "chips/gone.jpg", "gone.jpg is missing"),
        ("polygon", "GEOMETRYCOLLECTION (" * 100_000, "is not a WKT polygon"),
        ("polygon", "POLYGON ((nan nan, 1 1, 2 2, nan nan))", "is not a WKT polygon"),
        ("polygon", "POLYGON ((1 2", "is not a WKT polygon"),
        ("polygon", "POINT (1 2)", "is not a WKT polygon"),
    ],
)
def test_bad_rows_are_named(column: str, value: Any, message: str, tmp_path: Path) -> None:
    made = rows(tmp_path)
    made[2][column] = value
    schema = pa.schema([field.with_nullable(True) for field in SCHEMA])
    pyarrow.parquet.write_table(pa.Table.from_pylist(made, schema=schema), tmp_path / "manifest.parquet")
    with pytest.raises(ManifestError, match=message) as caught:
        Manifest.read(tmp_path)
    assert str(tmp_path / "manifest.parquet") in str(caught.value)


def test_many_bad_rows_are_counted_not_listed(tmp_path: Path) -> None:
    made = [{**row, "role": "x"} for row in rows(tmp_path, 50)]
    with pytest.raises(ManifestError, match="and 45 more"):
        Manifest.of_rows(made, tmp_path).write(tmp_path / "manifest.parquet")
    assert not (tmp_path / "manifest.parquet").exists()
    with pytest.raises(ManifestError, match="it has no rows"):
        Manifest.of_rows([], tmp_path).write(tmp_path / "manifest.parquet")


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    made = rows(tmp_path)
    (tmp_path / "chips" / "0.jpg").unlink()
    (tmp_path / "chips" / "0.jpg").symlink_to("/etc/passwd")
    Manifest.of_rows(made, tmp_path).write(tmp_path / "manifest.parquet")
    with pytest.raises(ManifestError, match=r"row 0 .* is a link out of the root"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"PAR1 nonsense PAR1", "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.parquet").write_bytes(content)
    with pytest.raises(ManifestError, match=message):
        Manifest.read(tmp_path)


def test_missing_files_and_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="is missing; run `lookdown prepare`"):
        Manifest.read(tmp_path / "manifest.parquet")
    (tmp_path / "m.csv").write_text("id,path\na,b\n")
    with pytest.raises(ManifestError, match="has no column scene, role, background, scene_group"):
        Manifest.read(tmp_path / "m.csv")
    (tmp_path / "n.csv").write_text("id,path,scene,role,background,scene_group\na,b,c,d,maybe,f\n")
    with pytest.raises(ManifestError, match=r"n\.csv"):
        Manifest.read(tmp_path / "n.csv")
