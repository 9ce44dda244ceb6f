"""The nearest known name, or the list of them."""

from __future__ import annotations

import pytest

from lookdown.suggestions import did_you_mean, nearest


@pytest.mark.parametrize("typed", ["tripplet", "Triplet", "triplet ", "TRIPLET"])
def test_the_nearest_name_is_suggested(typed: str) -> None:
    assert did_you_mean(typed, ["identity", "triplet"]) == "did you mean triplet?"


def test_dashes_and_underscores_are_the_same() -> None:
    assert nearest("learning-rate", ["epochs", "learning_rate"]) == "learning_rate"


def test_without_a_near_name_the_known_ones_are_listed_or_the_caller_says_where_to_look() -> None:
    assert did_you_mean("zz", ["a", "b"]) == "known are a, b"
    assert did_you_mean(None, ["a", "b"], otherwise="see the manual") == "see the manual"
    assert did_you_mean("zz", (f"name {number}" for number in range(45))).endswith("name 39 and 5 more")
    assert nearest("zz", []) is None
