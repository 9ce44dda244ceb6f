"""A Milvus server and an object store for all tests that want one; each starts with the first of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gallery.engines.running_milvus import RunningMilvus, why_not
from tests.gallery.running_store import BUCKET, RunningStore

from lookdown.gallery.engines.milvus_server import MilvusServer


@pytest.fixture(scope="session")
def milvus_binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the programs of servers."""
    if reason := why_not():
        pytest.skip(reason)
    return tmp_path_factory.mktemp("milvus-programs")


@pytest.fixture(scope="session")
def running_milvus(milvus_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMilvus]:
    """One server for the session."""
    with RunningMilvus(tmp_path_factory.mktemp("milvus"), milvus_binaries) as running:
        yield running


@pytest.fixture(scope="session")
def milvus(running_milvus: RunningMilvus) -> MilvusServer:
    """How to reach it."""
    return MilvusServer(uri=running_milvus.uri)


@pytest.fixture(scope="session")
def running_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    """One object store for the session."""
    with RunningStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def store(running_store: RunningStore, monkeypatch: pytest.MonkeyPatch) -> RunningStore:
    """The store, and an environment that leads to it and to no other."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in running_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_store


@pytest.fixture
def table(store: RunningStore) -> str:
    """An address where no table is yet."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/ships"
