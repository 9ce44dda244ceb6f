"""The splits of the paper, chip by chip and to its exact sizes. They leak, and serve comparison with the paper only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.protocols import Split, SplitDraft
from lookdown.chips.sources import SourceContent
from lookdown.errors import InputError
from lookdown.suggestions import did_you_mean

__all__ = ["PaperProtocol", "PaperSplit", "paper_split"]

PaperProtocol = Literal["CBRSOR-FGSRSI", "UDA-CBRSOR-FGSRSI", "CBRSOR-MAR", "UDA-CBRSOR-MAR"]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PaperSplit:
    """A split of the paper, for the argument `split` of `lookdown.prepare`."""

    protocol: str  # a `PaperProtocol`
    train_classes: tuple[str, ...] | None = None
    seed: int = 0

    def __call__(
        self, ids: Sequence[str], labels: Sequence[str | None], groups: Sequence[str], background: Sequence[bool]
    ) -> Split:
        """Return the role of each chip."""
        return paper_split(
            ids, labels, groups, background, protocol=self.protocol, train_classes=self.train_classes, seed=self.seed
        )

    def background_share(self, content: SourceContent) -> float:
        """Return how much background to cut, as a share of the objects; refuse a source with too few objects."""
        objects = [crop for crop in content.crops if not crop.background]
        ready = len(content.crops) - len(objects)
        to_cut = sum(crop.is_object for crop in objects)
        needed = _sizes_of(self.protocol).background
        spare = needed if to_cut else ready  # background can only be cut from scenes
        ids = [crop.id for crop in objects] + [f"background {number}" for number in range(spare)]
        labels = [crop.label for crop in objects] + [None] * spare
        self(ids, labels, ids, [False] * len(objects) + [True] * spare)
        return max(0, round(1.5 * (needed - ready))) / to_cut if to_cut else 0.0  # more: some scenes have no room


def paper_split(
    ids: Sequence[str],
    labels: Sequence[str | None],
    groups: Sequence[str],
    background: Sequence[bool],
    *,
    protocol: str,
    train_classes: Collection[str] | None = None,
    seed: int = 0,
) -> Split:
    """Split chip by chip to exactly the sizes of the paper. THIS LEAKS: groups are ignored.

    Chips of one place are in train, query and gallery alike, so scores are too high; use it only to compare with the
    paper. Chips beyond its sizes are left out. Without `train_classes`, the UDA protocols draw a choice of classes
    that has enough chips on both sides.
    """
    sizes = _sizes_of(protocol)
    draft = SplitDraft(ids, labels, groups, background)
    draft.refuse_unknown(train_classes)
    draft.drop_small(10)
    rng = np.random.default_rng(seed)
    if len(draft.members) != sizes.classes:
        raise InputError(
            f"{protocol} has {sizes.classes} classes of at least 10 chips, got {len(draft.members)}: "
            f"{', '.join(draft.members)}"
        )
    missing = sizes.background - len(draft.background)
    if missing > 0:
        raise InputError(f"{protocol} needs {sizes.background} background chips; {missing} are missing")
    every = list(draft.members)
    if sizes.train_classes is None:
        if train_classes is not None:
            raise InputError(f"{protocol} trains on every class; leave `train_classes` out")
        train, test = every, every
        _deal(draft, every, {"train": sizes.train, "query": sizes.query, "gallery": sizes.gallery}, rng)
    else:
        chosen = _draw_classes(draft, sizes, rng) if train_classes is None else train_classes
        train, test = draft.sides(chosen)
        if len(train) != sizes.train_classes:
            raise InputError(f"{protocol} trains on {sizes.train_classes} classes, got {len(train)} in train_classes")
        _deal(draft, train, {"train": sizes.train}, rng)
        _deal(draft, test, {"query": sizes.query, "gallery": sizes.gallery}, rng)
    for rank, row in enumerate(rng.permutation(draft.background)):
        draft.give(int(row), "gallery" if rank < sizes.background else None, "is beyond the sizes of the paper")
    draft.notes.append("groups are ignored as in the paper: chips of one place are in several roles, and scores leak")
    return draft.split(train, test)


class _Sizes(NamedTuple):
    train: int
    query: int
    gallery: int
    background: int
    classes: int
    train_classes: int | None  # None: every class is in all parts


_PAPER: dict[str, _Sizes] = {
    "CBRSOR-FGSRSI": _Sizes(516, 202, 320, 2065, 16, None),
    "UDA-CBRSOR-FGSRSI": _Sizes(545, 96, 397, 2065, 16, 9),
    "CBRSOR-MAR": _Sizes(7870, 633, 1194, 464, 20, None),
    "UDA-CBRSOR-MAR": _Sizes(6103, 233, 3361, 464, 20, 12),
}


def _sizes_of(protocol: str) -> _Sizes:
    if protocol not in _PAPER:
        raise InputError(f"protocol {protocol!r} is unknown; {did_you_mean(protocol, _PAPER)}")
    return _PAPER[protocol]


def _draw_classes(draft: SplitDraft, sizes: _Sizes, rng: np.random.Generator) -> list[str]:
    """Draw train classes among all choices that leave enough chips on both sides."""
    assert sizes.train_classes is not None
    names = list(draft.members)
    counts = np.array([len(draft.members[name]) for name in names])
    shape = comb(len(names), sizes.train_classes), sizes.train_classes
    choices = np.fromiter(chain.from_iterable(combinations(range(len(names)), shape[1])), np.int8).reshape(shape)
    train = counts[choices].sum(axis=1)
    short = np.maximum(sizes.train - train, 0) + np.maximum(sizes.query + sizes.gallery - (counts.sum() - train), 0)
    if short.min() > 0:
        raise InputError(
            f"no {shape[1]} of the {len(names)} classes leave enough chips on both sides; at best {short.min()} are "
            "missing"
        )
    chosen = choices[rng.choice(np.flatnonzero(short == 0))]
    return [names[c] for c in chosen]


def _deal(draft: SplitDraft, names: list[str], sizes: Mapping[str, int], rng: np.random.Generator) -> None:
    """Deal chips of these classes to parts of exact sizes, every class in every part, else in proportion."""
    left = np.array([len(draft.members[name]) for name in names])
    total = sum(sizes.values())
    missing = total - int(left.sum())
    if missing > 0:
        raise InputError(f"{' + '.join(sizes)} of the paper need {total} chips of these classes; {missing} are missing")
    shuffled = {name: rng.permutation(draft.members[name]).tolist() for name in names}
    left = _share_out(total, left, np.full(len(names), len(sizes)), left)
    for later, (role, size) in zip(range(len(sizes) - 1, -1, -1), sizes.items(), strict=True):
        quota = _share_out(size, left, np.ones_like(left), left - later)  # one chip at least for each later part
        left = left - quota
        for name, count in zip(names, quota, strict=True):
            for row in shuffled[name][:count]:
                draft.give(row, role, "")
            del shuffled[name][:count]
    for row in chain.from_iterable(shuffled.values()):
        draft.give(row, None, "is beyond the sizes of the paper")


def _share_out(total: int, weights: Counts, low: Counts, high: Counts) -> Counts:
    """Return whole numbers between `low` and `high` with this sum, as near as can be to the proportion of weights."""
    ideal = total * weights / weights.sum()
    share: Counts = np.clip(np.floor(ideal).astype(np.int64), low, high)
    while (rest := total - int(share.sum())) != 0:
        step = 1 if rest > 0 else -1
        room = share < high if step > 0 else share > low
        share[np.where(room, step * (ideal - share), -np.inf).argmax()] += step
    return share
