"""Settings that no network can have are refused; from batches to one array: order, places, what could not be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.chips.reader import ImageReader
from lookdown.errors import InputError, WeightsError
from lookdown.networks.embedding import EmbedderSettings, check_turns, compute, embed_all
from lookdown.progress import no_progress

PIXELS = np.arange(7 * 3 * 8 * 8).reshape(7, 3, 8, 8).astype(np.uint8)


def reader() -> ImageReader:
    return ImageReader(PIXELS, bands=3, size=8, batch_size=3)


def means(images: Any) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.asarray(images, np.float32).mean(axis=(2, 3))
    return found


def test_rows_are_those_of_the_whole_and_progress_ends_with_all() -> None:
    seen: list[tuple[Any, ...]] = []
    found = embed_all(reader(), means, 3, lambda *call: seen.append(call), skip=False)
    np.testing.assert_array_equal(found.embeddings, means(PIXELS))
    assert found.indices.tolist() == list(range(7))
    assert found.skipped == {}
    assert seen == [(3, 7, "chips"), (6, 7, "chips"), (7, 7, "chips")]


def test_a_number_that_is_none_is_told_by_its_image() -> None:
    def broken(images: Any) -> NDArray[np.float32]:
        values = means(images)
        values[1, 2] = np.inf
        return values

    with pytest.raises(WeightsError, match="NaN or inf for image 1"):
        list(compute(reader(), broken, no_progress))


def test_other_turns_than_one_or_four_are_refused() -> None:
    check_turns(1)
    check_turns(4)
    with pytest.raises(InputError, match="turns must be 1 or 4, got 2"):
        check_turns(2)


GOOD: dict[str, Any] = {
    "backbone": "resnet18", "bands": 3, "size": 64, "pooling": "gem", "head": "mlp", "dimension": 8,
    "mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bands": 0}, "bands must be a whole number"),
        ({"size": 64.0}, "size must be a whole number"),
        ({"dimension": True}, "dimension must be a whole number"),
        ({"bands": 257}, "bands must be a whole number from 1 to 256, got 257"),
        ({"size": 7}, "size must be a whole number from 8 to 2048, got 7"),
        ({"dimension": 65_537}, "dimension must be a whole number from 1 to 65536"),
        ({"pooling": "max"}, "pooling must be one of average, gem, got 'max'"),
        ({"head": "none"}, "head must be one of linear, mlp, pca"),
        ({"mean": (0.5,)}, "need 3 values, one a band"),
        ({"std": (0.2, 0.0, 0.2)}, "std positive"),
        ({"mean": (0.5, float("nan"), 0.5)}, "mean must be finite"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    assert EmbedderSettings(**GOOD).bands == 3
    with pytest.raises(InputError, match=message):
        EmbedderSettings(**{**GOOD, **change})
