"""A collection by itself, its scalar fields and filter expressions, and the names of a gallery on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tests.gallery.galleries import LABELS, SCENES, vector_gallery
from tests.gallery.search.engines.vectors import clustered, columns

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_collection import FIELDS, MilvusCollection, ScalarFields
from lookdown.gallery.scale.milvus_server import MilvusGallery, MilvusServer
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import FilterColumns

Z = clustered(40, 3)


@pytest.fixture
def gallery(milvus: MilvusServer) -> Iterator[MilvusGallery]:
    gallery = MilvusGallery(milvus, f"test_{uuid4().hex}")
    yield gallery
    gallery.drop("1-trained")


def test_another_gallery_in_the_same_place_has_another_name(milvus: MilvusServer, tmp_path: Path) -> None:
    names = {MilvusGallery.of(milvus, tmp_path / folder, lineage).alias for folder in "ab" for lineage in "xy"}
    assert len(names) == 4
    nasty = MilvusGallery.of(milvus, tmp_path / "it's -- a (船)", "x")
    assert nasty.collection("1-trained").isidentifier()
    assert nasty.alias.isascii()


def test_a_collection_of_someone_else_is_left_alone(gallery: MilvusGallery) -> None:
    from pymilvus import CollectionSchema, DataType, FieldSchema

    fields = [FieldSchema("id", DataType.INT64, is_primary=True), FieldSchema("vector", DataType.FLOAT_VECTOR, dim=16)]
    gallery.server.call(
        "create_collection", collection_name=gallery.collection("1-trained"), schema=CollectionSchema(fields)
    )
    with pytest.raises(EngineError, match="was not made by lookdown; drop or rename it"):
        MilvusCollection(gallery.server, gallery.collection("1-trained"))


def test_what_is_put_comes_back_and_what_is_removed_does_not(gallery: MilvusGallery) -> None:
    mean = Z.mean(axis=0)
    name = gallery.collection("1-trained")
    MilvusCollection.create(gallery.server, name, mean)
    collection = MilvusCollection(gallery.server, name)  # as another process opens it
    np.testing.assert_array_equal(collection.mean, mean)
    keys = np.arange(40) << 32
    collection.put(keys, Z, ScalarFields.of(columns(40)), np.arange(40))
    collection.remove(keys[:4])
    collection.settle()
    stored, checksums = collection.checksums(keys)
    assert dict(zip(stored.tolist(), checksums.tolist(), strict=True)) == {n << 32: n for n in range(4, 40)}
    (found,) = collection.fetch(keys)
    order = np.argsort(found.keys)
    np.testing.assert_array_equal(found.keys[order], keys[4:])
    np.testing.assert_array_equal(found.vectors[order], Z[4:])


def test_an_alias_is_no_obstacle_to_dropping(gallery: MilvusGallery) -> None:
    name = gallery.collection("1-trained")
    MilvusCollection.create(gallery.server, name, Z[0])
    gallery.use("1-trained")
    gallery.use("1-trained")
    assert gallery.server.call("describe_alias", alias=gallery.alias)["collection_name"] == name
    gallery.drop("1-trained")
    gallery.drop("1-trained")
    assert not gallery.server.has_collection(name)


@pytest.fixture(scope="module")
def gallery_columns(tmp_path_factory: pytest.TempPathFactory) -> FilterColumns:
    gallery, _, _ = vector_gallery(tmp_path_factory.mktemp("fields") / "g", 200)
    return gallery.snapshot.columns


def is_true(expression: str, row: dict[str, Any]) -> bool:
    """Read an expression of Milvus as Python, which differs only in the name of two values."""
    return bool(eval(expression, {"true": True, "false": False, "__builtins__": {}}, row))


@pytest.mark.parametrize(
    "where",
    [
        Where(),
        Where(label=LABELS[3]),
        Where(label=[*LABELS[:4]], scene=SCENES[1]),
        Where(labelled=True, background=False),
        Where(labelled=False),
        Where(sensor="S2'B", since="2021-03", until="2021-07-04"),
        Where(until="2021-02-01"),
        Where(box=(-4.0, 45.0, 3.0, 52.0)),
        Where(polygon="POLYGON ((-4 45, 3 45, 3 52, -4 45))"),
        Where(box=(170.0, -10.0, -170.0, 60.0)),
    ],
)
def test_an_expression_is_true_of_all_that_the_filter_keeps(where: Where, gallery_columns: FilterColumns) -> None:
    fields = {name: column.tolist() for name, column in ScalarFields.of(gallery_columns).items()}
    expression = ScalarFields.expression(where)
    true = [is_true(expression, {name: fields[name][row] for name in FIELDS}) for row in range(len(gallery_columns))]
    kept = where.rows(gallery_columns)
    assert not (kept & ~np.array(true)).any()
    if not where.regions():
        np.testing.assert_array_equal(kept, true)


def test_no_text_of_a_user_stands_in_an_expression() -> None:
    expression = ScalarFields.expression(Where(label="' or 1 == 1", scene='"]; drop', sensor="S2A"))
    assert (
        expression.replace("label in", "")
        .replace("scene in", "")
        .replace("sensor in", "")
        .replace("and", "")
        .strip("[] ")
    )
    assert set(expression) <= set("labelscenorid [],0123456789")


def test_a_checksum_changes_with_any_field(gallery_columns: FilterColumns) -> None:
    fields = ScalarFields.of(gallery_columns)
    before = fields.checksums()
    np.testing.assert_array_equal(before, ScalarFields.of(gallery_columns).checksums())
    for name, column in fields.items():
        other = column.copy()
        other[5] = ~other[5] if column.dtype == np.bool_ else other[5] + 1
        changed = np.flatnonzero(ScalarFields(fields | {name: other}).checksums() != before)
        assert changed.tolist() == [5], name
