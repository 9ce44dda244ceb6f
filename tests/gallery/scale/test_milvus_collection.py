"""Names on a server, and a collection by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import clustered, columns

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_collection import MilvusCollection, MilvusGallery
from lookdown.gallery.scale.milvus_facts import facts_of
from lookdown.gallery.scale.milvus_server import MilvusServer

Z = clustered(40, 3)


@pytest.fixture
def place(milvus: MilvusServer) -> Iterator[MilvusGallery]:
    place = MilvusGallery(milvus, f"test_{uuid4().hex}")
    yield place
    place.drop("1-trained")


def test_another_gallery_in_the_same_place_has_another_name(milvus: MilvusServer, tmp_path: Path) -> None:
    names = {MilvusGallery.of(milvus, tmp_path / folder, lineage).gallery for folder in "ab" for lineage in "xy"}
    assert len(names) == 4
    nasty = MilvusGallery.of(milvus, tmp_path / "it's -- a (船)", "x")
    assert nasty.collection("1-trained").isidentifier()
    assert nasty.gallery.isascii()


def test_a_collection_of_someone_else_is_left_alone(place: MilvusGallery) -> None:
    from pymilvus import CollectionSchema, DataType, FieldSchema

    fields = [FieldSchema("id", DataType.INT64, is_primary=True), FieldSchema("vector", DataType.FLOAT_VECTOR, dim=16)]
    place.server.ask(
        "create_collection", collection_name=place.collection("1-trained"), schema=CollectionSchema(fields)
    )
    with pytest.raises(EngineError, match="was not made by lookdown; drop or rename it"):
        MilvusCollection(place.server, place.collection("1-trained"))


def test_what_is_put_comes_back_and_what_is_removed_does_not(place: MilvusGallery) -> None:
    centre = Z.mean(axis=0)
    name = place.collection("1-trained")
    MilvusCollection.make(place.server, name, centre)
    collection = MilvusCollection(place.server, name)  # as another process opens it
    np.testing.assert_array_equal(collection.centre, centre)
    keys = np.arange(40) << 32
    collection.put(keys, Z, facts_of(columns(40)), np.arange(40))
    collection.remove(keys[:4])
    collection.settle()
    held, stamps = collection.held(keys)
    assert dict(zip(held.tolist(), stamps.tolist(), strict=True)) == {place << 32: place for place in range(4, 40)}
    (found,) = collection.fetch(keys)
    order = np.argsort(found.keys)
    np.testing.assert_array_equal(found.keys[order], keys[4:])
    np.testing.assert_array_equal(found.vectors[order], Z[4:])


def test_an_alias_is_no_obstacle_to_dropping(place: MilvusGallery) -> None:
    name = place.collection("1-trained")
    MilvusCollection.make(place.server, name, Z[0])
    place.use("1-trained")
    place.use("1-trained")
    assert place.server.ask("describe_alias", alias=place.gallery)["collection_name"] == name
    place.drop("1-trained")
    place.drop("1-trained")
    assert not MilvusCollection.exists(place.server, name)
