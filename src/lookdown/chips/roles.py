"""Which role each chip gets: by a protocol, by a rule of the caller's, or from a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lookdown.chips.manifest import ROLES
from lookdown.chips.protocols import Split, conventional, uda
from lookdown.chips.sources.folder import read_columns
from lookdown.errors import InputError

__all__ = ["SplitOptions", "SplitRule", "give_roles", "read_roles"]

# A way of one's own to split: it takes ids, labels, groups and background. Let it be a frozen dataclass that can be
# called, so that its fields are part of the fingerprint of the result.
SplitRule = Callable[[Sequence[str], Sequence[str | None], Sequence[str], Sequence[bool]], Split]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions:
    """How roles are given; `lookdown.prepare` describes each option."""

    protocol: Literal["conventional", "uda"] = "conventional"
    split: Literal["group", "none"] | SplitRule = "group"
    groups: Literal["auto", "scene"] = "auto"
    train_classes: tuple[str, ...] | None = None
    seed: int = 0
    reuse_split: Path | None = None

    def __post_init__(self) -> None:
        if self.train_classes and self.split == "group" and self.protocol == "conventional":
            raise InputError('`train_classes` is for `protocol="uda"`; conventional splits train on every class')


def give_roles(rows: list[dict[str, Any]], options: SplitOptions, roles: dict[str, str] | None = None) -> Split:
    """Return the role of each row of a manifest.

    roles: those of a split that was made before, by id.
    """
    if roles is not None:
        return _as_before(rows, roles)
    ids, labels, groups, background = (
        [row[name] for row in rows] for name in ("id", "label", "scene_group", "background")
    )
    if options.split == "none" or all(label is None for label in labels):
        return _all_gallery(len(rows))
    if callable(options.split):
        return options.split(ids, labels, groups, background)
    if options.protocol == "uda":
        return uda(ids, labels, groups, background, train_classes=options.train_classes, seed=options.seed)
    try:
        split = conventional(ids, labels, groups, background, seed=options.seed)
    except InputError as error:
        return _all_gallery(len(rows), f"nothing was split, every chip is in the gallery: {error}")
    return _with_unlabelled(split, labels, groups, background)


def read_roles(file: Path) -> dict[str, str]:
    """Read a split.csv: the role of each id."""
    rows = read_columns(file, ("id", "role"))
    if strange := sorted({row["role"] for row in rows} - set(ROLES)):
        raise InputError(f"{file} has the role {strange[0]!r}; a role is one of {', '.join(ROLES)}")
    return {row["id"]: row["role"] for row in rows}


def _all_gallery(chips: int, *notes: str) -> Split:
    return Split(roles=["gallery"] * chips, reasons=[None] * chips, notes=list(notes))


def _with_unlabelled(split: Split, labels: list[str | None], groups: list[str], background: list[bool]) -> Split:
    """Put chips without a class into the gallery, unless their group is in train or query."""
    role_of = {group: role for group, role in zip(groups, split.roles, strict=True) if role}
    for row, label in enumerate(labels):
        if label is None and not background[row]:
            role = role_of.get(groups[row], "gallery")
            split.roles[row] = role if role == "gallery" else None
            split.reasons[row] = None if role == "gallery" else f"has no label, and its group is in {role}"
    return split


def _as_before(rows: list[dict[str, Any]], role_of: dict[str, str]) -> Split:
    """Give the roles of a file; a group in several roles is noted, not corrected."""
    roles = [role_of.get(row["id"]) for row in rows]
    roles_of_group: dict[str, set[str]] = defaultdict(set)
    for row, role in zip(rows, roles, strict=True):
        if role:
            roles_of_group[row["scene_group"]].add(role)
    leaking = sum(len(several) > 1 for several in roles_of_group.values())
    notes = [f"{leaking} scene groups are in more than one role: the given split leaks"] if leaking else []
    reasons = [None if role else "the given split does not name it" for role in roles]
    return Split(roles=roles, reasons=reasons, notes=notes)
