"""Groups to roles, against every assignment there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lookdown.chips.group_roles import balance, held_by_role

SHARES = np.array([0.6, 0.1, 0.3])


def cost(held: np.ndarray, wanted: np.ndarray) -> float:
    """Squared deviation over what was wanted; a class that misses a role altogether weighs more than all else."""
    return float(((held - wanted) ** 2 / wanted).sum() + 1e9 * ((held == 0) & (wanted > 0)).sum())


@pytest.mark.parametrize("seed", range(8))
def test_the_deviation_is_near_that_of_the_best_of_all_assignments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, size=(8, 3))
    counts[:3] += 1  # each class in three groups at least
    wanted = SHARES[:, None] * counts.sum(axis=0)
    found = cost(held_by_role(counts, balance(counts, wanted, np.random.default_rng(0))), wanted)
    best = min(cost(held_by_role(counts, np.array(roles)), wanted) for roles in product(range(3), repeat=8))
    assert found <= best + 0.5 * counts.shape[1]


def test_objects_are_counted_by_role_and_class() -> None:
    counts = np.array([[1, 2], [10, 20], [100, 200]])
    np.testing.assert_array_equal(held_by_role(counts, np.array([2, 0, 2])), [[10, 20], [0, 0], [101, 202]])
