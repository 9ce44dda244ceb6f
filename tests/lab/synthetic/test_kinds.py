"""All kinds behind one call; pairs that differ in one thing."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.kinds import KINDS, ONE_FEATURE


def test_thirty_six_kinds_in_two_families() -> None:
    families = [kind.family for kind in KINDS.values()]
    assert families.count("ships") == 16
    assert families.count("aircraft") == 20


@pytest.mark.parametrize("name", KINDS)
def test_the_same_random_numbers_draw_the_same_object_and_others_another(name: str) -> None:
    def drawn(seed: int) -> bytes:
        parts = KINDS[name].draw(np.random.default_rng(seed))
        return b"".join(part.outline.tobytes() + np.array(part.colour).tobytes() for part in parts)

    assert drawn(3) == drawn(3)
    assert len({drawn(seed) for seed in range(20)}) > 1


@pytest.mark.parametrize(("first", "second", "feature"), ONE_FEATURE)
def test_pairs_share_all_parts_but_those_of_the_feature(first: str, second: str, feature: str) -> None:
    def drawn(name: str) -> set[tuple[bytes, float]]:
        parts = KINDS[name].draw(np.random.default_rng(0))
        return {(part.outline.round(6).tobytes(), round(part.top, 6)) for part in parts}

    ours, theirs = drawn(first), drawn(second)
    assert ours != theirs
    shared = len(ours & theirs) / max(len(ours), len(theirs))
    assert shared > 0.2 if feature == "angled deck" else shared > 0.45, shared
