"""Seeds for every place in a run."""

from __future__ import annotations

from lookdown.training.randomness import derived_seed


def test_places_have_their_own_numbers_and_keep_them() -> None:
    seeds = {derived_seed(seed, "views", epoch, step) for seed in range(3) for epoch in range(20) for step in range(20)}
    assert len(seeds) == 3 * 20 * 20
    assert derived_seed(0, "views", 1, 23) != derived_seed(0, "views", 12, 3)
    assert derived_seed(7, "a", 1) == derived_seed(7, "a", 1) < 2**63
