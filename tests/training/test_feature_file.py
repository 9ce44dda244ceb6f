"""Rows on disk, block by block: what comes back, and what does not count."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from lookdown.errors import DamagedCacheWarning, OutputError
from lookdown.training.feature_file import FeatureFile

ROWS = np.random.default_rng(0).normal(size=(7, 2, 3)).astype(np.float32)


def new(folder: Path, key: str = "a", chips: int = 10) -> FeatureFile:
    return FeatureFile(folder / "features", key, views=2, width=3, chips=chips)


def written(folder: Path) -> FeatureFile:
    """Write ten chips in three blocks, of which the second has no row."""
    file = new(folder)
    with file.locked():
        file.append(ROWS[:4], {1: "empty"})
        file.append(ROWS[:0], {5: "gone", 6: "torn"})
        assert file.done == 7
        file.append(ROWS[4:], {})
    return file


def test_rows_and_problems_come_back(tmp_path: Path) -> None:
    first = written(tmp_path)
    second = new(tmp_path)
    with second.locked():
        assert second.done == 10
        assert second.blocks == first.blocks
        assert [block.rows for block in second.blocks] == [4, 0, 3]
        assert second.blocks[1].problems == {5: "gone", 6: "torn"}
        np.testing.assert_array_equal(second.features(), ROWS.transpose(1, 0, 2))
    assert second.features().dtype == np.float32


def test_rows_without_their_line_do_not_count_and_are_written_over(tmp_path: Path) -> None:
    file = new(tmp_path)
    with file.locked():
        file.append(ROWS[:4], {1: "empty"})
    data = tmp_path / "features" / "features.bin"
    with data.open("ab") as stream:
        stream.write(b"x" * 1000)
    again = new(tmp_path)
    with again.locked():
        assert again.done == 5
        again.append(ROWS[4:], {5: "gone", 6: "torn"})
    assert data.stat().st_size == ROWS.nbytes
    np.testing.assert_array_equal(again.features(), ROWS.transpose(1, 0, 2))


@pytest.mark.parametrize(("key", "chips"), [("b", 10), ("a", 11)])
def test_rows_of_other_work_are_not_used(key: str, chips: int, tmp_path: Path) -> None:
    written(tmp_path)
    file = new(tmp_path, key, chips)
    with pytest.warns(DamagedCacheWarning, match=r"journal\.jsonl names other work"), file.locked():
        assert file.done == 0


def test_rows_that_are_missing(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "features" / "features.bin").unlink()
    file = new(tmp_path)
    with pytest.warns(DamagedCacheWarning, match=r"features\.bin is missing"), file.locked():
        assert file.done == 0


def test_one_at_a_time(tmp_path: Path) -> None:
    order = []
    file = new(tmp_path)

    def second() -> None:
        other = new(tmp_path)
        with other.locked():
            order.append(f"second sees {other.done}")

    with file.locked():
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.2)
        file.append(ROWS[:4], {})
        order.append("first is done")
    waiting.join()
    assert order == ["first is done", "second sees 4"]


def test_a_disk_without_room_is_told_before_the_work(tmp_path: Path) -> None:
    file = new(tmp_path, chips=10**12)
    with (
        pytest.raises(OutputError, match=r"MB free and the features need 24000000\.0 MB more; free the disk"),
        file.locked(),
    ):
        raise AssertionError("this is the work")


def test_a_write_that_fails_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = new(tmp_path)
    with file.locked():
        file.append(ROWS[:4], {1: "empty"})
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(OutputError, match="features cannot be written: No space left"):
                file.append(ROWS[4:], {})
        assert file.done == 5
        file.append(ROWS[4:], {5: "gone", 6: "torn"})
    np.testing.assert_array_equal(file.features(), ROWS.transpose(1, 0, 2))


def full(_: int) -> None:
    raise OSError(28, "No space left on device")
