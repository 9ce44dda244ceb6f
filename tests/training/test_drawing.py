"""Batches drawn ahead are those drawn in turn."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from lookdown.chips.augmentation import Strengths
from lookdown.training.drawing import Draw, drawn_batches
from lookdown.training.samples import ChipSamples


class Slow(ChipSamples):
    """Takes its time, and remembers when it was asked."""

    def __init__(self, images: np.ndarray, *, fails_at: int | None = None) -> None:
        super().__init__(images, Strengths())
        self.asked: list[int] = []
        self.fails_at = fails_at

    def drawn(self, indices: np.ndarray, seed: int, first: int = 0) -> torch.Tensor:
        self.asked.append(seed)
        if seed == self.fails_at:
            raise ValueError("cannot be drawn")
        time.sleep(0.05)
        return super().drawn(indices, seed, first)


def draws(count: int) -> list[Draw]:
    return [Draw(np.arange(4) + place, seed=place, first=4) for place in range(count)]


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (16, 3, 24, 24), dtype=np.uint8)


def test_both_ways_give_the_same_batches_in_the_same_order(images: np.ndarray) -> None:
    samples = ChipSamples(images, Strengths())
    for one, other in zip(
        drawn_batches(samples, draws(6), ahead=False), drawn_batches(samples, draws(6), ahead=True), strict=True
    ):
        assert np.array_equal(one.indices, other.indices)
        assert torch.equal(one.inputs, other.inputs)


def test_the_next_batch_is_drawn_while_this_one_is_used_and_no_more_than_that(images: np.ndarray) -> None:
    samples = Slow(images)
    batches = drawn_batches(samples, draws(5), ahead=True)
    first = next(batches)
    assert first.seconds > 0.04
    time.sleep(0.2)  # the network at work
    assert samples.asked == [0, 1]
    assert next(batches).seconds < 0.04


def test_in_turn_all_drawing_is_waiting(images: np.ndarray) -> None:
    assert all(batch.seconds > 0.04 for batch in drawn_batches(Slow(images), draws(3), ahead=False))


@pytest.mark.parametrize("ahead", [False, True])
def test_what_fails_is_told_where_it_is_asked_for(images: np.ndarray, ahead: bool) -> None:
    batches = drawn_batches(Slow(images, fails_at=2), draws(4), ahead=ahead)
    next(batches)
    next(batches)
    with pytest.raises(ValueError, match="cannot be drawn"):
        next(batches)


@pytest.mark.parametrize("ahead", [False, True])
def test_no_batches_are_none(images: np.ndarray, ahead: bool) -> None:
    assert list(drawn_batches(Slow(images), [], ahead=ahead)) == []
