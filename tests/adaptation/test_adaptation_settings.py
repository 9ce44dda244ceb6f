"""AdaptationSettings that mean nothing are refused when they are made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from lookdown.adaptation import AUTO, CPLFPA, AdaptationSettings
from lookdown.errors import InputError


def test_the_defaults_are_the_algorithm_of_the_paper() -> None:
    assert AdaptationSettings() == CPLFPA
    assert (CPLFPA.rounds, CPLFPA.nearest, CPLFPA.softness, CPLFPA.source_chips, CPLFPA.full_rank) == (1, 1, 0, 0, 0)
    assert (CPLFPA.weighting, CPLFPA.indefinite, CPLFPA.shrinkage) == (None, None, None)
    assert (CPLFPA.levels, CPLFPA.centred) == ((), False)
    assert AUTO != CPLFPA
    with pytest.raises(FrozenInstanceError):
        AUTO.rounds = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number from 1, got 0"),
        ({"rounds": 1.5}, "rounds must be a whole number from 1, got 1.5"),
        ({"nearest": 0}, "nearest must be above 0 and at most 1"),
        ({"nearest": 1.1}, "nearest must be above 0 and at most 1"),
        ({"softness": -1}, "softness and source_chips at least 0"),
        ({"softness": float("nan")}, "softness and source_chips at least 0"),
        ({"source_chips": -1}, "softness and source_chips at least 0"),
        ({"full_rank": 1}, "full_rank must be at least 0 and below 1, got 1"),
        ({"full_rank": -0.1}, "full_rank must be at least 0 and below 1, got -0.1"),
        ({"softness": 1, "nearest": 0.5}, "exclude one another"),
        ({"softness": 1, "weighting": "classes"}, "soft clusters count by pairs"),
        ({"ratio": "sums"}, "ratio must be 'differences' or 'kinds', got 'sums'"),
        ({"ratio": "kinds", "source_chips": 9}, "omit them with ratio='kinds'"),
        ({"levels": (1, 4)}, "levels must be whole numbers from 2"),
        ({"levels": (4,), "nearest": 0.5}, "softness and nearest are for K-means"),
        ({"levels": (4,), "softness": 1}, "softness and nearest are for K-means"),
        ({"centred": True}, "centred is for a tree"),
    ],
)
def test_what_means_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AdaptationSettings(**changes)
