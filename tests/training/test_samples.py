"""Where batches come from, and embeddings of the whole training set."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from torch import nn

from lookdown.chips.augmentation import Strengths
from lookdown.training.frozen_features import FrozenFeatures
from lookdown.training.samples import BatchPlan, ChipSamples, FeatureSamples, as_array, draw_batches, embed_all


def test_features_are_drawn_from_all_views_and_passed_as_they_lie() -> None:
    array = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    samples = FeatureSamples(FrozenFeatures(array, np.arange(6), {}), np.array([5, 1, 3]))
    drawn = [samples.draw(np.array([0, 2]), seed).numpy() for seed in range(60)]
    assert {float(batch[0, 0]) for batch in drawn} == {float(value) for value in array[:, 5, 0]}
    assert {float(batch[1, 0]) for batch in drawn} == {float(value) for value in array[:, 3, 0]}
    rows = np.concatenate([inputs.numpy() for _, inputs in samples.plain()])
    np.testing.assert_array_equal(rows, array[0, [5, 1, 3]])
    turned = np.concatenate([inputs.numpy() for _, inputs in samples.plain(turn=3)])
    np.testing.assert_array_equal(turned, array[3, [5, 1, 3]])
    assert len(samples) == 3
    whole, part = samples.draw(np.array([0, 1, 2, 0]), 9), samples.draw(np.array([2, 0]), 9, first=2)
    torch.testing.assert_close(whole[2:], part, rtol=0, atol=0)


def test_chips_are_augmented_when_drawn_only() -> None:
    images = np.random.default_rng(0).integers(0, 255, (300, 3, 16, 16), dtype=np.uint8)
    samples = ChipSamples(images, Strengths())
    rows = [(indices, inputs) for indices, inputs in samples.plain()]
    np.testing.assert_array_equal(np.concatenate([indices for indices, _ in rows]), np.arange(300))
    np.testing.assert_array_equal(np.concatenate([inputs.numpy() for _, inputs in rows]), images)
    turned = np.concatenate([inputs.numpy() for _, inputs in samples.plain(turn=1)])
    np.testing.assert_array_equal(turned, np.rot90(images, 1, (2, 3)))
    first, again, other = (samples.draw(np.array([7, 7]), seed) for seed in (1, 1, 2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert (first != other).any()
    assert (first[0] != first[1]).any()


def test_parts_of_a_batch_are_augmented_as_the_whole_is() -> None:
    """With blur and noise as well, so that two processes see the chips that one sees."""
    images = np.random.default_rng(0).integers(0, 255, (8, 3, 32, 32), dtype=np.uint8)
    samples = ChipSamples(images, Strengths())
    indices = np.array([5, 1, 3, 3, 0, 7])
    whole = samples.draw(indices, 9)
    assert torch.equal(whole[:4], samples.draw(indices[:4], 9))
    assert torch.equal(whole[4:], samples.draw(indices[4:], 9, first=4))


class Slow(ChipSamples):
    """Takes its time, and remembers when it was asked."""

    def __init__(self, images: np.ndarray, *, fails_at: int | None = None) -> None:
        super().__init__(images, Strengths())
        self.asked: list[int] = []
        self.fails_at = fails_at

    def draw(self, indices: np.ndarray, seed: int, first: int = 0) -> torch.Tensor:
        self.asked.append(seed)
        if seed == self.fails_at:
            raise ValueError("cannot be drawn")
        time.sleep(0.05)
        return super().draw(indices, seed, first)


def plans(count: int) -> list[BatchPlan]:
    return [BatchPlan(np.arange(4) + number, seed=number, first=4) for number in range(count)]


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (16, 3, 24, 24), dtype=np.uint8)


def test_both_ways_give_the_same_batches_in_the_same_order(images: np.ndarray) -> None:
    samples = ChipSamples(images, Strengths())
    for one, other in zip(
        draw_batches(samples, plans(6), ahead=False), draw_batches(samples, plans(6), ahead=True), strict=True
    ):
        assert np.array_equal(one.indices, other.indices)
        assert torch.equal(one.inputs, other.inputs)


def test_the_next_batch_is_drawn_while_this_one_is_used_and_no_more_than_that(images: np.ndarray) -> None:
    samples = Slow(images)
    batches = draw_batches(samples, plans(5), ahead=True)
    first = next(batches)
    assert first.waited_seconds > 0.04
    time.sleep(0.2)  # the network at work
    assert samples.asked == [0, 1]
    assert next(batches).waited_seconds < 0.04


def test_in_turn_all_drawing_is_waiting(images: np.ndarray) -> None:
    assert all(batch.waited_seconds > 0.04 for batch in draw_batches(Slow(images), plans(3), ahead=False))


@pytest.mark.parametrize("ahead", [False, True])
def test_what_fails_is_told_where_it_is_asked_for(images: np.ndarray, ahead: bool) -> None:
    batches = draw_batches(Slow(images, fails_at=2), plans(4), ahead=ahead)
    next(batches)
    next(batches)
    with pytest.raises(ValueError, match="cannot be drawn"):
        next(batches)


@pytest.mark.parametrize("ahead", [False, True])
def test_no_batches_are_none(images: np.ndarray, ahead: bool) -> None:
    assert list(draw_batches(Slow(images), [], ahead=ahead)) == []


def test_a_pass_learns_nothing_and_leaves_the_mode() -> None:
    network = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    features = np.random.default_rng(0).normal(size=(1, 120, 5)).astype(np.float32)
    samples = FeatureSamples(FrozenFeatures(features, np.arange(120), {}), np.arange(120))
    found = embed_all(network, samples, 3)
    with torch.no_grad():
        np.testing.assert_allclose(found, network.eval()(torch.from_numpy(features[0])).numpy(), rtol=1e-6)
    for name, value in network.train().state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


class Narrow(torch.Tensor):
    """A tensor on a device without float64, such as Apple's."""

    def double(self) -> torch.Tensor:
        raise TypeError("this device has no float64")

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        return self.as_subclass(torch.Tensor)


def test_a_device_without_float64_will_do() -> None:
    class Elsewhere(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input).as_subclass(Narrow)

    features = np.random.default_rng(0).normal(size=(1, 120, 5)).astype(np.float32)
    samples = FeatureSamples(FrozenFeatures(features, np.arange(120), {}), np.arange(120))
    network = Elsewhere(5, 3)
    found = embed_all(network, samples, 3)
    np.testing.assert_allclose(as_array(network(torch.from_numpy(features[0]))), found, rtol=1e-6)


def test_running_embeddings_count_each_chip_once_by_its_last() -> None:
    running = np.zeros((4, 2))
    running[np.array([1, 3])] = as_array(torch.ones(2, 2, requires_grad=True))
    running[np.array([3, 0])] = as_array(torch.full((2, 2), 2.0))
    np.testing.assert_array_equal(running, [[2, 2], [1, 1], [0, 0], [2, 2]])
