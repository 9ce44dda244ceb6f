"""Lists by the number of a chip; a damaged file is no more than time lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from lookdown.errors import DamagedCacheWarning
from lookdown.gallery.store.inverted_lists import read_lists, write_lists


def test_lists_follow_the_numbers_and_not_the_order(tmp_path: Path) -> None:
    file = tmp_path / "index" / "lists.safetensors"
    write_lists(file, np.array([7, 3, 9]), np.array([1, 2, 0], np.int32))
    found = read_lists(file, np.array([9, 5, 3, 7, 100]))
    assert found is not None
    assert found.tolist() == [0, -1, 2, 1, -1]
    assert found.dtype == np.int32


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert read_lists(tmp_path / "lists.safetensors", np.array([1])) is None


@pytest.mark.parametrize("size", [0, 7, 40, -1])
def test_a_truncated_file_is_said_and_not_used(tmp_path: Path, size: int) -> None:
    file = tmp_path / "lists.safetensors"
    write_lists(file, np.arange(50), np.zeros(50, np.int32))
    file.write_bytes(file.read_bytes()[:size])
    with pytest.warns(DamagedCacheWarning, match=r"lists\.safetensors is damaged .* built again"):
        assert read_lists(file, np.arange(50)) is None


@pytest.mark.parametrize(
    "content",
    [
        {"keys": np.arange(3)},
        {"keys": np.arange(3), "lists": np.zeros(2, np.int32)},
        {"keys": np.arange(3), "lists": np.zeros(3)},
        {"keys": np.arange(3), "lists": np.array([0, -4, 1], np.int32)},
    ],
)
def test_a_file_with_something_else_is_not_used(tmp_path: Path, content: dict[str, np.ndarray]) -> None:
    file = tmp_path / "lists.safetensors"
    file.write_bytes(save(content))
    with pytest.warns(DamagedCacheWarning):
        assert read_lists(file, np.arange(3)) is None


def test_a_place_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file where the folder should be")
    write_lists(tmp_path / "index" / "lists.safetensors", np.arange(3), np.zeros(3, np.int32))
    assert (tmp_path / "index").read_text() == "a file where the folder should be"
