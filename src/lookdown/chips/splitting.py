"""Which way of splitting is wanted, and what becomes of chips that no protocol speaks of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lookdown.chips import protocols
from lookdown.chips.annotations import Annotated
from lookdown.chips.manifest import ROLES
from lookdown.chips.protocols import Split
from lookdown.chips.sources.folder import read_columns
from lookdown.errors import InputError

__all__ = ["Splitting", "give_roles", "read_roles", "refuse_paper_early"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """How roles are given."""

    protocol: Literal["conventional", "uda"] = "conventional"
    split: Literal["group", "paper", "none"] = "group"  # none: everything is searched, nothing trained on
    paper: str | None = None  # which of the paper's protocols, with split="paper"
    groups: Literal["auto", "scene"] = "auto"  # as the source says, else by near-duplicates; or each scene for itself
    train_classes: tuple[str, ...] | None = None
    seed: int = 0
    roles: Path | None = None  # a split.csv written before, to use again

    def __post_init__(self) -> None:
        if (self.split == "paper") != (self.paper is not None):
            raise InputError("a split of the paper needs its name, and only that: --split paper --paper CBRSOR-MAR")
        if self.train_classes and self.split == "group" and self.protocol == "conventional":
            raise InputError("train classes are for --protocol uda; conventional splits train on every class")


def give_roles(rows: list[dict[str, Any]], splitting: Splitting, given: dict[str, str] | None = None) -> Split:
    """Return the role of each row of a manifest in the making, or those of a split made before."""
    if given is not None:
        return _given(rows, given)
    ids, labels, groups = ([row[name] for row in rows] for name in ("id", "label", "scene_group"))
    background = [row["background"] for row in rows]
    if splitting.split == "none" or all(label is None for label in labels):
        return _searched(len(rows), [])
    options: dict[str, Any] = {"seed": splitting.seed}
    if splitting.split == "paper":
        options |= {"protocol": splitting.paper, "train_classes": splitting.train_classes}
        return protocols.paper(ids, labels, groups, background, **options)
    if splitting.protocol == "uda":
        return protocols.uda(ids, labels, groups, background, train_classes=splitting.train_classes, **options)
    try:
        split = protocols.conventional(ids, labels, groups, background, **options)
    except InputError as error:
        return _searched(len(rows), [f"nothing was split, every chip is in the gallery: {error}"])
    return _with_unlabelled(split, labels, groups, background)


def _searched(chips: int, notes: list[str]) -> Split:
    return Split(roles=["gallery"] * chips, reasons=[None] * chips, notes=notes, train_classes=[], test_classes=[])


def _with_unlabelled(split: Split, labels: list[str | None], groups: list[str], background: list[bool]) -> Split:
    """Let chips of no known class be searched, unless their place trains or asks."""
    of_group = {group: role for group, role in zip(groups, split.roles, strict=True) if role}
    for row, label in enumerate(labels):
        if label is None and not background[row]:
            role = of_group.get(groups[row], "gallery")
            searched = role == "gallery"
            split.roles[row] = role if searched else None
            split.reasons[row] = None if searched else f"has no label, and its group is in {role}"
    return split


def _given(rows: list[dict[str, Any]], roles: dict[str, str]) -> Split:
    """Give the roles of a file; a place in two of them is said, not mended."""
    found = [roles.get(row["id"]) for row in rows]
    places: dict[str, set[str]] = defaultdict(set)
    for row, role in zip(rows, found, strict=True):
        if role:
            places[row["scene_group"]].add(role)
    leaking = sum(len(of_group) > 1 for of_group in places.values())
    notes = [f"{leaking} scene groups are in more than one role: the given split leaks"] if leaking else []
    reasons = [None if role else "the given split does not name it" for role in found]
    return Split(roles=found, reasons=reasons, notes=notes, train_classes=[], test_classes=[])


def read_roles(file: Path) -> dict[str, str]:
    """Read a split.csv: the role of each id."""
    rows = read_columns(file, ("id", "role"))
    if strange := sorted({row["role"] for row in rows} - set(ROLES)):
        raise InputError(f"{file} has the role {strange[0]!r}; a role is one of {', '.join(ROLES)}")
    return {row["id"]: row["role"] for row in rows}


def refuse_paper_early(found: Annotated, splitting: Splitting) -> None:
    """Find out before anything is cut whether there are objects enough; background is cut as needed."""
    assert splitting.paper is not None
    objects = [item for item in found.marked if not item.background]
    spare = protocols.paper_background(splitting.paper)
    ids = [item.id for item in objects] + [f"background {number}" for number in range(spare)]
    labels = [item.label for item in objects] + [None] * spare
    background = [False] * len(objects) + [True] * spare
    options: dict[str, Any] = {"protocol": splitting.paper, "train_classes": splitting.train_classes}
    protocols.paper(ids, labels, ids, background, seed=splitting.seed, **options)
