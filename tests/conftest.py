"""A Milvus server for all tests that want one; it starts with the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gallery.engines.running_milvus import RunningMilvus, why_not

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
