"""Who trains, who asks and who is searched: roles of chips without leaks, and those of the paper.

A group holds chips of one place (see `scene_groups`). Apart from `paper`, whole groups get one role, so that no place
is seen in training and again in the test, nor in a query and again in the gallery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Literal, NamedTuple

import numpy as np

from lookdown.chips.group_roles import Array, Counts, balance, held_by_role
from lookdown.errors import InputError

__all__ = ["PaperProtocol", "Split", "conventional", "paper", "paper_background", "uda"]

PaperProtocol = Literal["CBRSOR-FGSRSI", "UDA-CBRSOR-FGSRSI", "CBRSOR-MAR", "UDA-CBRSOR-MAR"]

_ROLES = ("train", "query", "gallery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The role of each chip, in the order of the input."""

    roles: list[str | None]  # "train", "query", "gallery", or None: left out
    reasons: list[str | None]  # why it is left out
    notes: list[str]  # sentences to print: dropped classes, sizes against what was wanted
    train_classes: list[str]
    test_classes: list[str]


def conventional(
    ids: Sequence[str],
    labels: Sequence[str | None],
    groups: Sequence[str],
    background: Sequence[bool],
    *,
    ratios: tuple[float, float, float] = (0.6, 0.1, 0.3),
    minimum: int = 10,
    seed: int = 0,
) -> Split:
    """Split so that every class is in train, query and gallery; `ratios` are their shares of each class.

    Classes with fewer than `minimum` objects, or that whole groups cannot bring into all three roles, are dropped and
    named in the notes. Background is in the gallery only; where its group trains or asks, it is left out.
    """
    if len(ratios) != 3 or min(ratios) <= 0 or abs(sum(ratios) - 1) > 1e-6:
        raise InputError(f"ratios must be three positive numbers with sum 1 (train, query, gallery), got {ratios}")
    draft = _Draft(ids, labels, groups, background)
    draft.drop_small(minimum)
    for name in [name for name in draft.members if len(draft.groups_of(name)) < 3]:
        draft.drop(name, "sits in fewer than three groups and cannot be in train, query and gallery")
    _place(draft, dict.fromkeys(draft.members, ratios), np.random.default_rng(seed))
    return draft.split(list(draft.members), list(draft.members))


def uda(
    ids: Sequence[str],
    labels: Sequence[str | None],
    groups: Sequence[str],
    background: Sequence[bool],
    *,
    train_share: float = 0.6,
    query_share: float = 0.1,
    train_classes: Collection[str] | None = None,
    minimum: int = 10,
    seed: int = 0,
) -> Split:
    """Split so that no class is both in train and in the test (unsupervised domain adaptation).

    `train_share` is the share of classes to train on, unless `train_classes` names them (none: no chip trains, it is an
    archive for a network from elsewhere); `query_share` is the share of each test class that asks. A group goes where
    it is worth most; its objects of the other class set are left out and counted in the notes. Background is in the
    gallery only, as in `conventional`.
    """
    if not (0 < train_share < 1 and 0 < query_share < 1):
        raise InputError(f"shares must be between 0 and 1, got train_share={train_share}, query_share={query_share}")
    draft = _Draft(ids, labels, groups, background)
    draft.refuse_unknown(train_classes)
    draft.drop_small(minimum)
    rng = np.random.default_rng(seed)
    if train_classes is None:
        if len(draft.members) < 2:
            raise InputError(f"two classes of at least {minimum} objects are needed, got {list(draft.members)}")
        shuffled = [str(name) for name in rng.permutation(list(draft.members))]
        shuffled.sort(key=lambda name: len(draft.groups_of(name)) > 1)  # a class in one group can only train
        size = min(max(1, round(train_share * len(shuffled))), len(shuffled) - 1)
        train_classes = shuffled[:size]
    for name in [name for name in draft.members if name not in train_classes and len(draft.groups_of(name)) < 2]:
        draft.drop(name, "sits in one group and cannot be both in query and gallery")
    test = (0.0, query_share, 1 - query_share)
    shares = {name: (1.0, 0.0, 0.0) if name in train_classes else test for name in draft.members}
    _place(draft, shares, rng, trains=len(train_classes) > 0)
    return draft.split(*_sides(draft, train_classes))


def paper(
    ids: Sequence[str],
    labels: Sequence[str | None],
    groups: Sequence[str],
    background: Sequence[bool],
    *,
    protocol: PaperProtocol,
    train_classes: Collection[str] | None = None,
    seed: int = 0,
) -> Split:
    """Split chip by chip to exactly the sizes of the paper. THIS LEAKS: groups are ignored.

    Chips of one place are in train, query and gallery alike, so scores are too high; use it only to compare with the
    paper. Chips beyond its sizes are left out. Without `train_classes`, the UDA protocols draw a choice of classes
    that has enough chips on both sides.
    """
    if protocol not in _PAPER:
        raise InputError(f"protocol {protocol!r} is unknown; known are {', '.join(_PAPER)}")
    sizes = _PAPER[protocol]
    draft = _Draft(ids, labels, groups, background)
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
            raise InputError(f"{protocol} trains on every class; leave train_classes out")
        train, test = every, every
        _deal(draft, every, {"train": sizes.train, "query": sizes.query, "gallery": sizes.gallery}, rng)
    else:
        chosen = _draw_classes(draft, sizes, rng) if train_classes is None else train_classes
        train, test = _sides(draft, chosen)
        if len(train) != sizes.train_classes:
            raise InputError(f"{protocol} trains on {sizes.train_classes} classes, got {len(train)} in train_classes")
        _deal(draft, train, {"train": sizes.train}, rng)
        _deal(draft, test, {"query": sizes.query, "gallery": sizes.gallery}, rng)
    for rank, row in enumerate(rng.permutation(draft.background)):
        draft.give(int(row), "gallery" if rank < sizes.background else None, "is beyond the sizes of the paper")
    draft.notes.append("groups are ignored as in the paper: chips of one place are in several roles, and scores leak")
    return draft.split(train, test)


def paper_background(protocol: str) -> int:
    """Return how many background chips a protocol of the paper has."""
    if protocol not in _PAPER:
        raise InputError(f"protocol {protocol!r} is unknown; known are {', '.join(_PAPER)}")
    return _PAPER[protocol].background


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


class _Draft:
    """A split in the making. Rows are visited by their ids, so that the order of the input does not matter."""

    def __init__(
        self, ids: Sequence[str], labels: Sequence[str | None], groups: Sequence[str], background: Sequence[bool]
    ) -> None:
        sizes = {"ids": len(ids), "labels": len(labels), "groups": len(groups), "background": len(background)}
        if len(set(sizes.values())) > 1:
            raise InputError(f"one entry a chip is needed in each column, got {sizes}")
        twice = [name for name, count in Counter(ids).items() if count > 1]
        if twice:
            raise InputError(f"ids must be unique, but {twice[0]!r} occurs more than once")
        order = sorted(range(len(ids)), key=lambda row: ids[row])
        self.groups = groups
        self.roles: list[str | None] = [None] * len(ids)
        self.reasons: list[str | None] = [None] * len(ids)
        self.notes: list[str] = []
        self.background = [row for row in order if background[row]]
        members: dict[str, list[int]] = {}
        for row in order:
            label = labels[row]
            if background[row]:
                continue
            if label is None:
                self.reasons[row] = "has no label"
            else:
                members.setdefault(label, []).append(row)
        self.members = dict(sorted(members.items()))  # kept classes and their rows
        self.all_classes = list(self.members)

    def groups_of(self, name: str) -> set[str]:
        return {self.groups[row] for row in self.members[name]}

    def give(self, row: int, role: str | None, otherwise: str) -> None:
        self.roles[row], self.reasons[row] = role, None if role else otherwise

    def drop(self, name: str, why: str) -> None:
        rows = self.members.pop(name)
        for row in rows:
            self.reasons[row] = f"class {name} {why}"
        self.notes.append(f"class {name} ({len(rows)} objects) is dropped: it {why}")

    def drop_small(self, minimum: int) -> None:
        for name in [name for name, rows in self.members.items() if len(rows) < minimum]:
            self.drop(name, f"has fewer than {minimum} objects")

    def refuse_unknown(self, train_classes: Collection[str] | None) -> None:
        unknown = sorted(set(train_classes or ()) - set(self.all_classes))
        if unknown:
            raise InputError(f"train_classes not among the labels: {', '.join(unknown)}")

    def split(self, train: list[str], test: list[str]) -> Split:
        return Split(
            roles=self.roles, reasons=self.reasons, notes=self.notes, train_classes=train, test_classes=test
        )  # fmt: skip


def _sides(draft: _Draft, train_classes: Collection[str]) -> tuple[list[str], list[str]]:
    kept = list(draft.members)
    return [name for name in kept if name in train_classes], [name for name in kept if name not in train_classes]


def _place(
    draft: _Draft, shares: Mapping[str, tuple[float, float, float]], rng: np.random.Generator, *, trains: bool = True
) -> None:
    """Give each group a role, dropping one by one the classes that cannot reach every role they have a share in."""
    needed = [trains, True, True]
    while True:
        wanted = np.array([shares[name] for name in draft.members]).reshape(-1, 3).T
        if not wanted.size or not (wanted.sum(axis=1) > 0)[needed].all():
            raise InputError(
                "no class is left for train or for the test; give more objects in more groups or lower `minimum`. "
                + "; ".join(draft.notes)
            )
        names = list(draft.members)
        groups = sorted(set().union(*(draft.groups_of(name) for name in names)))
        position = {group: k for k, group in enumerate(groups)}
        counts = np.zeros((len(groups), len(names)), dtype=np.int64)
        for c, name in enumerate(names):
            np.add.at(counts[:, c], [position[draft.groups[row]] for row in draft.members[name]], 1)
        wanted = wanted * counts.sum(axis=0)
        role_of = balance(counts, wanted, rng)
        lacking = ((held_by_role(counts, role_of) == 0) & (wanted > 0)).any(axis=0)
        if not lacking.any():
            break
        spread = np.where(lacking, (counts > 0).sum(axis=0), len(groups) + 1)
        draft.drop(names[int(spread.argmin())], "shares its groups with other classes and cannot reach every role")
    _apply(draft, {group: _ROLES[role_of[k]] for group, k in position.items()}, shares)
    _describe(draft, held_by_role(counts, role_of) * (wanted > 0), wanted)


def _apply(draft: _Draft, role_of: Mapping[str, str], shares: Mapping[str, tuple[float, float, float]]) -> None:
    stray: Counter[str] = Counter()
    for name, rows in draft.members.items():
        for row in rows:
            role = role_of[draft.groups[row]]
            allowed = shares[name][_ROLES.index(role)] > 0
            draft.give(row, role if allowed else None, f"class {name} has no place in a {role} group")
            stray[name] += not allowed
    if stray.total():
        lost = ", ".join(f"{name} {count}" for name, count in stray.items() if count)
        draft.notes.append(f"{stray.total()} objects are left out because their group is on the other side: {lost}")
    for row in draft.background:  # a group without objects has no role, and may be searched
        role = role_of.get(draft.groups[row], "gallery")
        draft.give(row, role if role == "gallery" else None, f"is background of a {role} group")
    out = sum(draft.roles[row] is None for row in draft.background)
    if out:
        draft.notes.append(
            f"{out} of {len(draft.background)} background chips are left out because their group is in train or query"
        )


def _describe(draft: _Draft, held: Counts, wanted: Array) -> None:
    sizes = zip(_ROLES, held.sum(axis=1), wanted.sum(axis=1), strict=True)
    draft.notes.append("objects: " + ", ".join(f"{role} {got} (wanted {want:.0f})" for role, got, want in sizes))
    off = np.abs(held - wanted) / wanted.sum(axis=0)
    role, c = np.unravel_index(off.argmax(), off.shape)
    draft.notes.append(
        f"furthest from its wanted size: class {list(draft.members)[c]}, {held[role, c]} in {_ROLES[role]} "
        f"(wanted {wanted[role, c]:.1f})"
    )


def _draw_classes(draft: _Draft, sizes: _Sizes, rng: np.random.Generator) -> list[str]:
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


def _deal(draft: _Draft, names: list[str], sizes: Mapping[str, int], rng: np.random.Generator) -> None:
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
