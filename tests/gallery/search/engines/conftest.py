"""Small galleries: on a busy machine, threads that wait for one another would take longer than the work."""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        yield
    faiss.omp_set_num_threads(before)
