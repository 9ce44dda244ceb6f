"""Batches of P classes x K images: what every epoch shows, in any process, from any step."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookdown.errors import InputError
from lookdown.training.class_batches import ClassBatches

COUNTS = (40, 1, 7, 12, 3, 5, 9, 2, 31)


def labels_of(counts: tuple[int, ...] | list[int], seed: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Labels that are neither in order nor without gaps."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)) * 3 - 2, counts))


@st.composite
def settings_of_batches(draw: st.DrawFn) -> tuple[list[int], int, int, int]:
    counts = draw(st.lists(st.integers(1, 40), min_size=2, max_size=14).filter(lambda counts: max(counts) > 1))
    return counts, draw(st.integers(2, len(counts))), draw(st.integers(2, 6)), draw(st.integers(0, 5))


@settings(max_examples=150, deadline=None)
@given(settings_of_batches())
def test_an_epoch_shows_every_image_in_batches_of_different_classes(drawn: tuple[list[int], int, int, int]) -> None:
    counts, classes, samples, epoch = drawn
    labels = labels_of(counts)
    whole = ClassBatches(labels, classes=classes, samples=samples, seed=1)
    batches = whole.batches(epoch)
    groups = [-(-count // samples) for count in counts]
    assert batches.dtype == np.int64
    assert batches.shape == (len(whole), classes * samples)
    assert len(whole) == max(-(-sum(groups) // classes), max(groups))
    for batch in batches:
        assert sorted(Counter(labels[batch].tolist()).values()) == [samples] * classes
        for group in batch.reshape(classes, samples):
            assert len(set(labels[group])) == 1  # images of a class stand side by side
            assert len(set(group)) == min(samples, counts[(labels[group[0]] + 2) // 3])
    shown = Counter(batches.ravel().tolist())
    assert set(shown) == set(range(len(labels)))


@settings(max_examples=60, deadline=None)
@given(settings_of_batches())
def test_no_image_is_shown_much_more_often_than_another_of_its_class(drawn: tuple[list[int], int, int, int]) -> None:
    """A deal shows each image of a class once or, where the last group is filled up, once more."""
    counts, classes, samples, epoch = drawn
    labels = labels_of(counts)
    batches = ClassBatches(labels, classes=classes, samples=samples).batches(epoch)
    further = []
    for name, count in zip(np.unique(labels), counts, strict=True):
        shown = np.bincount(batches.ravel(), minlength=len(labels))[labels == name]
        groups, dealt = int(shown.sum()) // samples, -(-count // samples)
        in_a_deal = dealt * samples / count
        assert math.floor(in_a_deal) * (groups // dealt) <= shown.min()
        assert shown.max() <= math.ceil(in_a_deal) * math.ceil(groups / dealt)
        further.append((groups - dealt, len(batches) - dealt))
    extra = [given for given, room in further if given < room]  # of the classes that are not in every batch
    assert not extra or max(extra) - min(extra) <= 1
    assert all(given <= max(extra, default=room) + 1 for given, room in further)


def test_classes_of_even_size_are_shown_once() -> None:
    labels = labels_of([8] * 12)
    batches = ClassBatches(labels, classes=4, samples=4).batches(0)
    assert sorted(batches.ravel()) == list(range(96))


def test_epochs_and_seeds_differ_and_repeat() -> None:
    labels = labels_of(COUNTS)
    one, other = (ClassBatches(labels, classes=4, samples=3, seed=seed) for seed in (0, 1))
    epochs = [one.batches(epoch) for epoch in range(3)]
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[0], other.batches(0))
    for epoch in (2, 0, 1):  # in whichever order they are asked for, in the middle or from the start
        np.testing.assert_array_equal(one.batches(epoch)[5:], epochs[epoch][5:])
    np.testing.assert_array_equal(one.batches(1), ClassBatches(labels, classes=4, samples=3).batches(1))


def test_another_process_draws_the_same() -> None:
    code = (
        "import hashlib, numpy; from lookdown.training.class_batches import ClassBatches\n"
        f"labels = numpy.array({labels_of(COUNTS).tolist()})\n"
        "drawn = ClassBatches(labels, classes=4, samples=3, seed=7).batches(5)\n"
        "print(hashlib.sha256(drawn.tobytes()).hexdigest())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ClassBatches(labels_of(COUNTS), classes=4, samples=3, seed=7).batches(5)
    assert shown.stdout.strip() == hashlib.sha256(own.tobytes()).hexdigest()


def test_the_global_generator_stays_as_it_is() -> None:
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    ClassBatches(labels_of(COUNTS), classes=4, samples=3).batches(0)
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert np.array_equal(before["key"], after["key"])
    assert before["pos"] == after["pos"]


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_shards_stacked_are_the_batch_of_one_process(shards: int) -> None:
    labels = labels_of(COUNTS)
    whole = ClassBatches(labels, classes=8, samples=3, seed=2)
    parts = [ClassBatches(labels, classes=8, samples=3, seed=2, shard=i, shards=shards) for i in range(shards)]
    assert {len(part) for part in parts} == {len(whole)}
    drawn = [part.batches(3) for part in parts]
    np.testing.assert_array_equal(np.concatenate(drawn, axis=1), whole.batches(3))
    for batch in np.concatenate(drawn):
        assert set(Counter(labels[batch].tolist()).values()) == {3}
        assert len(set(labels[batch])) == 8 // shards


def test_which_classes_meet_is_left_to_chance() -> None:
    """In 300 epochs each pair of 8 equal classes meets about as often as any other."""
    labels = labels_of([6] * 8)
    batches = ClassBatches(labels, classes=4, samples=3)
    together = np.zeros((8, 8))
    for epoch in range(300):
        for batch in batches.batches(epoch):
            present = np.unique((labels[batch] + 2) // 3)
            together[np.ix_(present, present)] += 1
    meetings = together[np.triu_indices(8, 1)]
    expected = 300 * 4 * 6 / 28  # 4 batches, each with 6 of the 28 pairs
    assert abs(meetings - expected).max() < 5 * expected**0.5


def test_labels_may_be_a_list_or_a_tensor() -> None:
    labels = labels_of(COUNTS)
    expected = ClassBatches(labels, classes=4, samples=3).batches(0)
    for same in (labels.tolist(), torch.from_numpy(labels), labels.astype(np.int8)):
        np.testing.assert_array_equal(ClassBatches(same, classes=4, samples=3).batches(0), expected)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (labels_of(COUNTS), {"samples": 1}, "samples must be an integer of at least 2, or a batch has no pairs of the"),
        (labels_of(COUNTS), {"classes": 1}, "classes must be an integer of at least 2, or a batch has no pairs of dif"),
        (labels_of(COUNTS), {"classes": 2.5}, "classes must be an integer"),
        (labels_of(COUNTS), {"samples": True}, "samples must be an integer"),
        (labels_of(COUNTS), {"seed": -1}, "seed must be an integer of at least 0"),
        (labels_of(COUNTS), {"classes": 10}, "labels hold 9 classes, fewer than the 10 of a batch; set classes to 9"),
        (labels_of(COUNTS), {"shards": 0}, "shards must be"),
        (labels_of(COUNTS), {"shard": 2, "shards": 2}, "shard must be below shards, got 2 of 2"),
        (labels_of(COUNTS), {"classes": 8, "shards": 3}, "8 classes a batch cannot be .* set classes to 9"),
        (labels_of(COUNTS), {"classes": 4, "shards": 4}, "at least two whole classes each; set classes to 8"),
        ([5, 5, 5], {}, "labels hold 1 classes of 3 images"),
        (np.empty(0, np.int64), {}, "labels hold 0 classes of 0 images"),
        (list(range(20)), {}, "each of the 20 classes has one image only"),
        ([0.0, 1.0], {}, r"one integer an image, got float64 \(2,\)"),
        (["a", "b"], {}, "number the classes"),
        ([[0, 1]], {}, r"one integer an image, got int64 \(1, 2\)"),
        ([True, False], {}, "one integer an image, got bool"),
    ],
)
def test_what_cannot_be_dealt_is_refused(labels: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClassBatches(labels, **{"classes": 4, **options})


def test_an_epoch_before_the_first_is_refused() -> None:
    with pytest.raises(InputError, match="epoch must be an integer of at least 0, got -1"):
        ClassBatches(labels_of(COUNTS), classes=4).batches(-1)
