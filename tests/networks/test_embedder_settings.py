"""EmbedderSettings refuse what no network can be built from."""

from __future__ import annotations

from typing import Any

import pytest

from lookdown.errors import InputError
from lookdown.networks import EmbedderSettings

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
