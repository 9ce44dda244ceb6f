"""Theorem 1, mixture half: exact for one Gaussian, an approximation with a stated error for more."""

from __future__ import annotations

from lookdown.lab.paper import theorem_1


def test_the_error_is_none_for_one_component_and_small_against_the_scores_for_more() -> None:
    found = theorem_1.run((1, 5), chips_per_class=30, pairs=2_000)
    assert found[1].largest_error < 1e-6
    assert 0.01 < found[5].rms_error < 0.2 * found[5].exact.std()
    assert found[5].rank_correlation > 0.99
