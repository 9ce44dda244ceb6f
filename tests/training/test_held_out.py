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
    with pytest.raises(InputError, match="of 1 training places, 20 % cannot be kept back"):
        hold_out(["a", "b"] * 5, ["here"] * 10, 0.2, 0)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_back_must_have_pairs_of_both_kinds(seed: int) -> None:
    """Of two chips there is one pair, so that either nothing can be found or nothing mistaken for it."""
    labels, places = [f"class {row % 10}" for row in range(40)], [f"place {row}" for row in range(40)]
    with pytest.raises(InputError, match=r"two classes in them, one of which has two chips; .* or raise data.held_out"):
        hold_out(labels, places, 0.05, seed)


def test_a_single_class_has_a_sentence_of_its_own() -> None:
    with pytest.raises(InputError, match="all 10 training chips are of one class, ship; "):
        hold_out(["ship"] * 10, [f"place {row}" for row in range(10)], 0.5, 0)
