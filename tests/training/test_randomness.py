"""Seeds for every place in a run."""

from __future__ import annotations

import torch

from lookdown.training.randomness import derived_seed, generator_for


def test_places_have_their_own_numbers_and_keep_them() -> None:
    seeds = {derived_seed(seed, "views", epoch, step) for seed in range(3) for epoch in range(20) for step in range(20)}
    assert len(seeds) == 3 * 20 * 20
    assert derived_seed(0, "views", 1, 23) != derived_seed(0, "views", 12, 3)
    first, again = (torch.rand(4, generator=generator_for(7, "a", 1)) for _ in range(2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
