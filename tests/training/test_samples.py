"""Where batches come from."""

from __future__ import annotations

import numpy as np
import torch

from lookdown.chips.augmentation import Strengths
from lookdown.training.features import FrozenFeatures
from lookdown.training.samples import ChipSamples, FeatureSamples


def test_features_are_drawn_from_all_views_and_passed_as_they_lie() -> None:
    array = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    samples = FeatureSamples(FrozenFeatures(array, np.arange(6), {}), np.array([5, 1, 3]))
    drawn = [samples.drawn(np.array([0, 2]), seed).numpy() for seed in range(60)]
    assert {float(batch[0, 0]) for batch in drawn} == {float(value) for value in array[:, 5, 0]}
    assert {float(batch[1, 0]) for batch in drawn} == {float(value) for value in array[:, 3, 0]}
    rows = np.concatenate([inputs.numpy() for _, inputs in samples.plain()])
    np.testing.assert_array_equal(rows, array[0, [5, 1, 3]])
    turned = np.concatenate([inputs.numpy() for _, inputs in samples.plain(turn=3)])
    np.testing.assert_array_equal(turned, array[3, [5, 1, 3]])
    assert len(samples) == 3
    whole, part = samples.drawn(np.array([0, 1, 2, 0]), 9), samples.drawn(np.array([2, 0]), 9, first=2)
    torch.testing.assert_close(whole[2:], part, rtol=0, atol=0)


def test_chips_are_augmented_when_drawn_only() -> None:
    images = np.random.default_rng(0).integers(0, 255, (300, 3, 16, 16), dtype=np.uint8)
    samples = ChipSamples(images, Strengths())
    rows = [(indices, inputs) for indices, inputs in samples.plain()]
    np.testing.assert_array_equal(np.concatenate([indices for indices, _ in rows]), np.arange(300))
    np.testing.assert_array_equal(np.concatenate([inputs.numpy() for _, inputs in rows]), images)
    turned = np.concatenate([inputs.numpy() for _, inputs in samples.plain(turn=1)])
    np.testing.assert_array_equal(turned, np.rot90(images, 1, (2, 3)))
    first, again, other = (samples.drawn(np.array([7, 7]), seed) for seed in (1, 1, 2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert (first != other).any()
    assert (first[0] != first[1]).any()


def test_parts_of_a_batch_are_augmented_as_the_whole_is() -> None:
    """With blur and noise as well, so that two processes see the chips that one sees."""
    images = np.random.default_rng(0).integers(0, 255, (8, 3, 32, 32), dtype=np.uint8)
    samples = ChipSamples(images, Strengths())
    indices = np.array([5, 1, 3, 3, 0, 7])
    whole = samples.drawn(indices, 9)
    assert torch.equal(whole[:4], samples.drawn(indices[:4], 9))
    assert torch.equal(whole[4:], samples.drawn(indices[4:], 9, first=4))
