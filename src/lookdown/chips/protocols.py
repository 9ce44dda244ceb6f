"""How chips are split into train, query and gallery without leaks.

A group holds chips of one place (see `scene_groups`). Whole groups get one role, so that no place is in train and in
the test, nor in query and gallery.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.manifest import ROLES
from lookdown.chips.sources import SkippedItem
from lookdown.errors import InputError

__all__ = ["Split", "SplitDraft", "balance", "conventional", "held_by_role", "uda"]

Shares = tuple[float, float, float]  # of a class, in train, query and gallery
Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_TRIES = 20  # orders of the groups; the best is taken
_TRIED_GROUPS = 20_000  # over all tries: one try is enough for many small groups
_MOVES = 1000  # of a group to another role, after the greedy start
_MOVED_COUNTS = 100_000_000  # entries of groups x classes examined for moves: greedy is good with many groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The role of each chip, in the order of the input."""

    roles: list[str | None]  # "train", "query", "gallery", or None: left out
    reasons: list[str | None]  # why it is left out
    notes: list[str]  # sentences for the user: dropped classes, sizes against those wanted
    train_classes: list[str] = field(default_factory=list)
    test_classes: list[str] = field(default_factory=list)

    def left_out(self, ids: Sequence[str]) -> list[SkippedItem]:
        """Return the chips without a role, with the reason."""
        chips = zip(ids, self.roles, self.reasons, strict=True)
        return [SkippedItem(name, reason or "it has no role") for name, role, reason in chips if role is None]


def conventional(
    ids: Sequence[str],
    labels: Sequence[str | None],
    groups: Sequence[str],
    background: Sequence[bool],
    *,
    ratios: Shares = (0.6, 0.1, 0.3),
    minimum: int = 10,
    seed: int = 0,
) -> Split:
    """Split so that every class is in train, query and gallery.

    Classes that whole groups cannot bring into all three roles are dropped and named in the notes. Background is in the
    gallery only; it is left out if its group is in train or query.

    ids, labels, groups, background: columns with one entry a chip; the label is None where it is unknown.
    ratios: the shares of each class in train, query and gallery.
    minimum: drop classes with fewer objects.
    """
    if len(ratios) != 3 or min(ratios) <= 0 or abs(sum(ratios) - 1) > 1e-6:
        raise InputError(f"ratios must be three positive numbers with sum 1 (train, query, gallery), got {ratios}")
    draft = SplitDraft(ids, labels, groups, background)
    draft.drop_small(minimum)
    for name in [name for name in draft.members if len(draft.groups_of(name)) < 3]:
        draft.drop(name, "sits in fewer than three groups and cannot be in train, query and gallery")
    _assign_roles(draft, dict.fromkeys(draft.members, ratios), np.random.default_rng(seed))
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

    A group goes to the side where it helps most; its objects of the other side's classes are left out and counted in
    the notes. Background is in the gallery only, as in `conventional`, which describes the other arguments.

    train_share: share of the classes to train on.
    query_share: share of each test class that goes to query.
    train_classes: the classes to train on, instead of a seeded choice. An empty list trains on none: the chips are an
        archive for a network that was trained elsewhere.
    """
    if not (0 < train_share < 1 and 0 < query_share < 1):
        raise InputError(f"shares must be between 0 and 1, got train_share={train_share}, query_share={query_share}")
    draft = SplitDraft(ids, labels, groups, background)
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
    _assign_roles(draft, shares, rng, trains=len(train_classes) > 0)
    return draft.split(*draft.sides(train_classes))


class SplitDraft:
    """A split in the making. Rows are visited in the order of their ids, so the order of the input does not matter."""

    def __init__(
        self, ids: Sequence[str], labels: Sequence[str | None], groups: Sequence[str], background: Sequence[bool]
    ) -> None:
        sizes = {"ids": len(ids), "labels": len(labels), "groups": len(groups), "background": len(background)}
        if len(set(sizes.values())) > 1:
            raise InputError(f"one entry a chip is needed in each column, got {sizes}")
        if twice := [name for name, count in Counter(ids).items() if count > 1]:
            raise InputError(f"ids must be unique, but {twice[0]!r} occurs more than once")
        order = sorted(range(len(ids)), key=lambda row: ids[row])
        self.groups = groups
        self.roles: list[str | None] = [None] * len(ids)
        self.reasons: list[str | None] = [None] * len(ids)
        self.notes: list[str] = []
        self.background = [row for row in order if background[row]]
        members: dict[str, list[int]] = defaultdict(list)
        for row in (row for row in order if not background[row]):
            if (label := labels[row]) is not None:
                members[label].append(row)
            else:
                self.reasons[row] = "has no label"
        self.members = dict(sorted(members.items()))  # the classes that are kept, and their rows
        self.all_classes = list(self.members)

    def groups_of(self, name: str) -> set[str]:
        """Return the groups that hold a class."""
        return {self.groups[row] for row in self.members[name]}

    def give(self, row: int, role: str | None, otherwise: str) -> None:
        """Give a role, or None with the reason why there is none."""
        self.roles[row], self.reasons[row] = role, None if role else otherwise

    def drop(self, name: str, why: str) -> None:
        """Leave a class out, and note it."""
        rows = self.members.pop(name)
        for row in rows:
            self.reasons[row] = f"class {name} {why}"
        self.notes.append(f"class {name} ({len(rows)} objects) is dropped: it {why}")

    def drop_small(self, minimum: int) -> None:
        """Leave out classes with fewer objects."""
        for name in [name for name, rows in self.members.items() if len(rows) < minimum]:
            self.drop(name, f"has fewer than {minimum} objects")

    def refuse_unknown(self, train_classes: Collection[str] | None) -> None:
        """Refuse classes that no chip has."""
        if unknown := sorted(set(train_classes or ()) - set(self.all_classes)):
            raise InputError(f"train_classes not among the labels: {', '.join(unknown)}")

    def sides(self, train_classes: Collection[str]) -> tuple[list[str], list[str]]:
        """Divide the kept classes into those to train on and those to test on."""
        train = [name for name in self.members if name in train_classes]
        return train, [name for name in self.members if name not in train_classes]

    def split(self, train: list[str], test: list[str]) -> Split:
        """Return the finished split."""
        return Split(roles=self.roles, reasons=self.reasons, notes=self.notes, train_classes=train, test_classes=test)


def _assign_roles(
    draft: SplitDraft, shares: Mapping[str, Shares], rng: np.random.Generator, *, trains: bool = True
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
    _apply(draft, {group: ROLES[role_of[k]] for group, k in position.items()}, shares)
    _describe(draft, held_by_role(counts, role_of) * (wanted > 0), wanted)


def _apply(draft: SplitDraft, role_of: Mapping[str, str], shares: Mapping[str, Shares]) -> None:
    stray: Counter[str] = Counter()
    for name, rows in draft.members.items():
        for row in rows:
            role = role_of[draft.groups[row]]
            allowed = shares[name][ROLES.index(role)] > 0
            draft.give(row, role if allowed else None, f"class {name} has no share in {role}, where its group is")
            if not allowed:
                stray[name] += 1
    if stray:
        lost = ", ".join(f"{name} {count}" for name, count in stray.items())
        draft.notes.append(f"{stray.total()} objects are left out because their group is on the other side: {lost}")
    for row in draft.background:  # a group without objects has no role yet: it may be searched
        role = role_of.get(draft.groups[row], "gallery")
        draft.give(row, role if role == "gallery" else None, f"is background of a {role} group")
    if out := sum(draft.roles[row] is None for row in draft.background):
        draft.notes.append(
            f"{out} of {len(draft.background)} background chips are left out because their group is in train or query"
        )


def _describe(draft: SplitDraft, held: Counts, wanted: Array) -> None:
    sizes = zip(ROLES, held.sum(axis=1), wanted.sum(axis=1), strict=True)
    draft.notes.append("objects: " + ", ".join(f"{role} {got} (wanted {want:.0f})" for role, got, want in sizes))
    off = np.abs(held - wanted) / wanted.sum(axis=0)
    role, c = np.unravel_index(off.argmax(), off.shape)
    draft.notes.append(
        f"furthest from its wanted size: class {list(draft.members)[c]}, {held[role, c]} in {ROLES[role]} "
        f"(wanted {wanted[role, c]:.1f})"
    )


def balance(counts: Counts, wanted: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the role of each group, such that the objects held (role, class) come near those wanted.

    Groups are taken roughly from the largest to the smallest, each to the role that reduces the deviation most; then
    single groups move as long as that helps. The deviation is the sum of (held - wanted)^2 / wanted over the roles that
    a class has a share in. Sizes are blurred at random; otherwise every seed would give nearly the same split.

    counts: (groups, classes) objects.
    wanted: (roles, classes) objects.
    """
    size = counts.sum(axis=1)
    best, least = np.zeros(len(counts), dtype=np.intp), np.inf
    for _ in range(min(_TRIES, 1 + _TRIED_GROUPS // len(counts))):
        role_of = np.zeros(len(counts), dtype=np.intp)
        held = np.zeros_like(wanted)
        for group in np.argsort(-size * rng.uniform(0.5, 1.5, len(size)), kind="stable"):
            gain = _deviation(held + counts[group], wanted) - _deviation(held, wanted)
            role_of[group] = gain.argmin()
            held[role_of[group]] += counts[group]
        _improve(role_of, counts, wanted)
        cost = float(_cost(held_by_role(counts, role_of), wanted).sum())
        if cost < least:
            best, least = role_of, cost
        if cost < wanted.shape[1]:  # about one object off in each class: no order does much better
            break
    return best


def _improve(role_of: NDArray[np.intp], counts: Counts, wanted: Array) -> None:
    """Move one group at a time to another role, the best move first, until none helps."""
    rows = np.arange(len(counts))
    for _ in range(min(_MOVES, 1 + _MOVED_COUNTS // counts.size)):
        held = held_by_role(counts, role_of)
        now = _cost(held, wanted)
        enter = np.stack([_cost(held[r] + counts, wanted[r]) - now[r] for r in range(3)], axis=1)
        leave = _cost(held[role_of] - counts, wanted[role_of]) - now[role_of]
        change = enter + leave[:, None]
        change[rows, role_of] = 0
        group, role = np.unravel_index(change.argmin(), change.shape)
        if change[group, role] > -1e-6:
            return
        role_of[group] = role


def _deviation(held: Array | Counts, wanted: Array) -> Array:
    """Return the sum over classes of (held - wanted)^2 / wanted, where anything is wanted."""
    return np.asarray(((held - wanted) ** 2 / np.where(wanted > 0, wanted, np.inf)).sum(axis=-1))


def _cost(held: Array | Counts, wanted: Array) -> Array:
    """Return the deviation; a role without any object of a class that it should have outweighs all else."""
    lacking = ((held == 0) & (wanted > 0)).sum(axis=-1)
    return np.asarray(_deviation(held, wanted) + 1e9 * lacking)


def held_by_role(counts: Counts, role_of: NDArray[np.intp]) -> Counts:
    """Return how many objects of each class each role holds, (3, classes)."""
    return np.stack([counts[role_of == role].sum(axis=0) for role in range(3)])
