"""Galleries and clients that the tests of the service share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.service.galleries import client_of, make_gallery
from tests.templates import template

from lookdown import Gallery


@pytest.fixture(scope="session")
def made() -> Path:
    """A gallery that nobody changes."""
    return template("bars", make_gallery)


@pytest.fixture
def gallery(made: Path, tmp_path: Path) -> Gallery:
    """A copy of it to change."""
    return Gallery.open(shutil.copytree(made, tmp_path / "bars"))


@pytest.fixture(scope="session")
def reader(made: Path) -> Iterator[TestClient]:
    """A client that only reads."""
    with client_of(Gallery.open(made)) as client:
        yield client


@pytest.fixture
def writer(gallery: Gallery) -> Iterator[TestClient]:
    """A client that may do anything."""
    with client_of(gallery, access="write") as client:
        yield client
