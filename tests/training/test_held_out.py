"""What is kept back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookdown.errors import InputError
from lookdown.training.held_out import hold_out


@given(seed=st.integers(0, 1000), groups=st.integers(12, 30), share=st.floats(0.15, 0.5))
def test_whole_groups_are_kept_back_and_every_class_stays(seed: int, groups: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    labels = [f"class {number % 4}" for number in range(8 * groups)]
    places = [f"place {number // 8}" for number in range(8 * groups)]
    kept = hold_out(labels, places, share, seed)
    assert kept.sum() <= share * len(labels)
    assert kept.sum() >= share * len(labels) - 8
    by_place = {place: {bool(kept[row]) for row in range(len(places)) if places[row] == place} for place in set(places)}
    assert all(len(sides) == 1 for sides in by_place.values())
    assert {labels[row] for row in np.flatnonzero(~kept)} == set(labels)
    order = rng.permutation(len(labels))
    again = hold_out([labels[row] for row in order], [places[row] for row in order], share, seed)
    np.testing.assert_array_equal(again, kept[order])


def test_one_place_cannot_be_divided() -> None:
    with pytest.raises(InputError, match="of the 1 training places can be kept back"):
        hold_out(["a", "b"] * 5, ["here"] * 10, 0.2, 0)
