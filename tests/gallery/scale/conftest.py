"""Ray nodes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gallery.scale.ray_nodes import RayNodes


@pytest.fixture(scope="session")
def nodes() -> Iterator[RayNodes]:
    """Two nodes; a test that kills one starts another in its place."""
    with RayNodes(2) as running:
        yield running
