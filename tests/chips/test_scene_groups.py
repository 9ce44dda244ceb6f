"""Groups of scenes against all pairs; which changes of a chip keep its hash."""

from __future__ import annotations

import io
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips import scene_groups
from lookdown.chips.scene_groups import find_groups, perceptual_hash
from lookdown.errors import InputError

Chip = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
DISTANCE = 6


def chip(seed: int, height: int = 96, width: int = 120) -> Chip:
    """Smooth blotches, as different between seeds as two places are."""
    coarse = np.random.default_rng(seed).integers(20, 230, (7, 8, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def compressed(pixels: Chip, quality: int = 50) -> Chip:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def resized(pixels: Chip, scale: float) -> Chip:
    height, width = pixels.shape[:2]
    return np.asarray(Image.fromarray(pixels).resize((round(width * scale), round(height * scale))))


def brighter(pixels: Chip) -> Chip:
    return np.asarray(np.clip(pixels * 1.08 + 5, 0, 255), dtype=np.uint8)


def bits_apart(a: int, b: int) -> int:
    return (a ^ b).bit_count()


def hashes_of(*chips: Chip) -> Hashes:
    return np.array([perceptual_hash(pixels) for pixels in chips], dtype=np.uint64)


def clustered(size: int, seed: int, flips: int = 10) -> Hashes:
    """Hashes around few centres, so that many pairs are at every small distance."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2**64, max(1, size // 3), dtype=np.uint64)
    hashes = centres[rng.integers(0, len(centres), size)]
    for _ in range(flips):
        flip = np.uint64(1) << rng.integers(0, 64, size).astype(np.uint64)
        hashes = np.where(rng.random(size) < 0.4, hashes ^ flip, hashes)
    return hashes


def by_all_pairs(hashes: Hashes, scenes: list[str], distance: int) -> list[str]:
    group = {scene: scene for scene in scenes}
    said = [8 <= int(value).bit_count() <= 56 for value in hashes]
    for i, j in combinations(range(len(hashes)), 2):
        if said[i] and said[j] and bits_apart(int(hashes[i]), int(hashes[j])) <= distance:
            keep, gone = sorted((group[scenes[i]], group[scenes[j]]))
            group = {scene: keep if name == gone else name for scene, name in group.items()}
    return [group[scene] for scene in scenes]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.integers(0, 10**6), st.integers(0, 9), st.integers(1, 40))
def test_groups_are_those_of_all_pairs(size: int, seed: int, distance: int, scenes: int) -> None:
    hashes = clustered(size, seed)
    names = [f"scene {k}" for k in np.random.default_rng(seed + 1).integers(0, scenes, size)]
    assert find_groups(hashes, names, distance=distance) == by_all_pairs(hashes, names, distance)


@pytest.mark.parametrize("distance", [0, 1, 4, 6, 16])
def test_not_one_pair_at_the_limit_is_missed_and_none_beyond_it_joined(distance: int) -> None:
    rng = np.random.default_rng(distance)
    for _ in range(40):
        hashed = int(rng.integers(0, 2**64, dtype=np.uint64)) & ~0xFF | 0x0F
        flipped = rng.permutation(64)
        near = hashed ^ sum(1 << int(bit) for bit in flipped[:distance])
        far = hashed ^ sum(1 << int(bit) for bit in flipped[: distance + 1])
        pair = find_groups(np.array([hashed, near], dtype=np.uint64), ["a", "b"], distance=distance)
        assert pair == ["a", "a"]
        assert find_groups(np.array([hashed, far], dtype=np.uint64), ["a", "b"], distance=distance) == ["a", "b"]


def test_blocks_do_not_change_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes, names = clustered(300, 5), [f"{k % 120:03}" for k in range(300)]
    whole = find_groups(hashes, names, distance=DISTANCE)
    assert len(set(whole)) > 1
    monkeypatch.setattr(scene_groups, "_BLOCK_PAIRS", 3)
    assert find_groups(hashes, names, distance=DISTANCE) == whole


def test_every_chip_of_a_scene_follows_it_and_chains_hold_together() -> None:
    a, b, unlike = (0x0F0F0F0F0F0F0F0F, 0xFF00FF00FF00FF00, 0x123456789ABCDEF0)
    hashes = np.array([a, unlike, a, b, b], dtype=np.uint64)
    assert find_groups(hashes, ["z", "z", "m", "m", "c"], distance=0) == ["c"] * 5
    assert find_groups(hashes, ["z", "y", "m", "q", "c"], distance=0) == ["m", "y", "m", "c", "c"]


def test_scenes_that_share_very_many_chips_are_joined() -> None:
    hashes = np.repeat(clustered(30, 1, flips=0), 512)  # the count of an edge must not overflow to nothing
    assert set(find_groups(hashes, ["a", "b"] * (len(hashes) // 2), distance=0)) == {"a"}


@pytest.mark.parametrize("seed", range(8))
def test_a_chip_that_is_compressed_resized_brightened_or_shifted_stays_in_its_group(seed: int) -> None:
    original = chip(seed)
    changed = [
        compressed(original),
        resized(original, 0.6),
        resized(original, 1.7),
        brighter(original),
        compressed(brighter(resized(original, 0.8))),
        np.roll(original, 1, axis=1)[:, 1:],
        original[1:, :-1],
    ]
    found = find_groups(hashes_of(original, *changed), [f"{k}" for k in range(8)])
    assert found == ["0"] * 8


def test_different_chips_stay_apart() -> None:
    hashes = hashes_of(*(chip(seed) for seed in range(200)))
    names = [f"{k:03}" for k in range(200)]
    assert find_groups(hashes, names) == names


def test_flat_chips_and_plain_slopes_join_nothing() -> None:
    rng = np.random.default_rng(0)
    sea = [rng.normal(60, 6, (64, 64, 3)).clip(0, 255).astype(np.uint8) for _ in range(20)]
    slope = np.broadcast_to(np.linspace(10, 240, 64).astype(np.uint8), (64, 64))
    flat = [*sea, np.zeros((5, 7), np.uint8), slope, slope, slope[:, ::-1], slope[:, ::-1]]
    assert all(perceptual_hash(pixels) == 0 for pixels in flat[:21])
    names = [f"{k:02}" for k in range(len(flat))]
    assert find_groups(hashes_of(*flat), names, distance=16) == names


def test_grey_and_colour_agree_and_tiny_chips_are_hashed() -> None:
    grey = chip(3)[..., 0]
    assert perceptual_hash(grey) == perceptual_hash(np.repeat(grey[..., None], 3, axis=2))
    assert perceptual_hash(grey) == perceptual_hash(grey[..., None])
    assert 0 <= perceptual_hash(grey[:3, :2]) < 2**64


def test_a_bit_is_set_where_a_cell_is_brighter_than_its_left_neighbour_and_equal_cells_set_none() -> None:
    three_pixels = np.array([[0, 100, 50]], np.uint8)  # three cells each
    assert f"{perceptual_hash(three_pixels):064b}" == "00100000" * 8


def test_memory_stays_in_proportion_to_the_number_of_chips() -> None:
    size = 20_000
    hashes = clustered(size, 2)
    names = [f"{k}" for k in range(size)]
    tracemalloc.start()
    find_groups(hashes, names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size * size / 8  # bytes: less than one bit a pair


@pytest.mark.parametrize(
    ("hashes", "scenes", "distance", "message"),
    [
        (np.zeros(3, np.uint64), ["a"], 1, "one hash a chip"),
        (np.zeros((1, 1), np.uint64), ["a"], 1, "one hash a chip"),
        (np.zeros(1, np.int64), ["a"], 1, "must be uint64"),
        (np.zeros(1, np.uint64), ["a"], 17, "distance must be from 0 to 16"),
        (np.zeros(1, np.uint64), ["a"], -1, "distance must be from 0 to 16"),
    ],
)
def test_unusable_input_is_refused(hashes: Hashes, scenes: list[str], distance: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_groups(hashes, scenes, distance=distance)


@pytest.mark.parametrize("pixels", [np.zeros((0, 4), np.uint8), np.zeros(4, np.uint8), np.zeros((4, 4))])
def test_what_is_no_chip_is_refused(pixels: Chip) -> None:
    with pytest.raises(InputError, match="a chip must be a uint8 array"):
        perceptual_hash(pixels)


def test_no_chips_make_no_groups() -> None:
    assert find_groups(np.array([], dtype=np.uint64), []) == []
