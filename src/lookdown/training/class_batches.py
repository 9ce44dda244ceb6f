"""Batches of P classes with K images each, so that every batch has pairs of the same and of different classes."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError

__all__ = ["ClassBatches"]

Indices = NDArray[np.int64]


class ClassBatches:
    """Batches of `classes` different classes with `samples` images each; every epoch shows every image at least once.

    In an epoch the images of each class are shuffled and dealt in groups of `samples`; a short last group is filled up
    from the first, so that no image is twice in a group unless its class has too few. The epoch has as many batches as
    all groups need, but at least as many as the largest class has groups, since no batch shows a class twice. Slots
    that are left go to further groups, shuffled anew, of the classes that are not in every batch already: equally many
    to each, give or take one drawn at random. So a class with more than 1 in `classes` of all groups sets the length
    of the epoch, and the other classes are shown more than once.

    A class of one image is paired with itself: two different views of it are a pair.

    Of `shards` processes, each gets the same number of whole groups of every batch; stacked in the order of `shard`,
    they are the batch of a single process.
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        classes: int = 16,
        samples: int = 4,
        seed: int = 0,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        self.classes = _at_least(2, "classes", classes, "or a batch has no pairs of different classes")
        self.samples = _at_least(2, "samples", samples, "or a batch has no pairs of the same class")
        self.seed = _at_least(0, "seed", seed)
        self.shards = _at_least(1, "shards", shards)
        self.shard = _at_least(0, "shard", shard)
        if shard >= shards:
            raise InputError(f"shard must be below shards, got {shard} of {shards}; count from 0")
        if classes % shards or classes // shards < 2:
            raise InputError(
                f"{classes} classes a batch cannot be shared out to {shards} processes with at least two whole classes "
                f"each; set classes to {shards * max(2, round(classes / shards))}, or start another number of processes"
            )
        self._members = _members(labels, classes)
        self._dealt = np.array([-(-len(members) // samples) for members in self._members])  # groups a class
        self._length = max(-(-int(self._dealt.sum()) // classes), int(self._dealt.max()))

    def __len__(self) -> int:
        """Batches in an epoch; the same for every epoch and shard."""
        return self._length

    def batches(self, epoch: int) -> Indices:
        """Return the batches of an epoch as indices into the labels, a row per batch, images of a class side by side.

        They depend on labels, settings and `epoch` alone, so a stopped run goes on with `batches(epoch)[step:]`. Rows
        have `classes * samples / shards` entries.
        """
        generator = np.random.default_rng((self.seed, _at_least(0, "epoch", epoch)))
        groups = self._dealt + self._further_groups(generator)
        plan = _plan(groups, self._length, self.classes, generator)  # (batches, classes)
        images = np.empty((*plan.shape, self.samples), np.int64)
        order = np.argsort(plan, axis=None, kind="stable")  # slots of the plan, class by class, first batches first
        images.reshape(-1, self.samples)[order] = np.concatenate([
            self._deal(members, int(count), generator) for members, count in zip(self._members, groups, strict=True)
        ])  # fmt: skip
        own = slice(self.shard * self.classes // self.shards, (self.shard + 1) * self.classes // self.shards)
        return np.ascontiguousarray(images[:, own]).reshape(self._length, -1)

    def _further_groups(self, generator: np.random.Generator) -> Indices:
        """Return how many groups each class is dealt beyond the first deal, to fill every slot of every batch."""
        room = self._length - self._dealt
        slots = self._length * self.classes - int(self._dealt.sum())
        rounds = bisect_right(range(self._length + 1), slots, key=lambda n: int(np.minimum(room, n).sum())) - 1
        further: Indices = np.minimum(room, rounds)
        open_classes = np.flatnonzero(room > rounds)
        further[generator.permutation(open_classes)[: slots - int(further.sum())]] += 1
        return further

    def _deal(self, members: Indices, count: int, generator: np.random.Generator) -> Indices:
        """Return `count` groups of a class, (count, samples), shuffled anew when all its images have been dealt."""
        whole = -(-len(members) // self.samples)
        deals = [
            np.resize(generator.permutation(members), (whole, self.samples))  # runs on from the first where it is short
            for _ in range(-(-count // whole))
        ]
        return np.concatenate(deals)[:count]


def _plan(groups: Indices, length: int, classes: int, generator: np.random.Generator) -> Indices:
    """Return the classes of each batch, (length, classes), different in a row; class c stands in groups[c] rows.

    With r batches to come and q groups of a class left, the class is drawn with probability q / r: classes are laid
    end to end in random order, each q long, and a comb with teeth r apart selects those that it meets. As q <= r, no
    class is met twice, and one with q = r is always met; so q <= r holds to the last batch.
    """
    left = groups.copy()
    plan = np.empty((length, classes), np.int64)
    teeth = np.arange(classes)
    for batch, remaining in enumerate(range(length, 0, -1)):
        order = generator.permutation(len(left))
        ends = left[order].cumsum()
        met = np.searchsorted(ends, generator.integers(remaining) + remaining * teeth, side="right")
        plan[batch] = order[met]
        left[plan[batch]] -= 1
    return plan


def _members(labels: ArrayLike, classes: int) -> list[Indices]:
    """Return the indices of each class, in the order of the labels."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(
            f"labels must be one integer an image, got {values.dtype} {values.shape}; number the classes, for "
            "instance with numpy.unique(names, return_inverse=True)"
        )
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise InputError(f"labels hold {len(counts)} classes of {len(values)} images; training needs two or more")
    if counts.max() < 2:
        raise InputError(
            f"each of the {len(counts)} classes has one image only, so there is no pair of the same class; label "
            "classes that have two images or more"
        )
    if len(counts) < classes:
        raise InputError(
            f"labels hold {len(counts)} classes, fewer than the {classes} of a batch; set classes to {len(counts)} "
            "or fewer"
        )
    return np.split(np.argsort(inverse, kind="stable").astype(np.int64), counts.cumsum()[:-1])


def _at_least(least: int, name: str, value: int, reason: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"{name} must be an integer of at least {least}{', ' + reason if reason else ''}, got {value!r}"
        )
    return int(value)
