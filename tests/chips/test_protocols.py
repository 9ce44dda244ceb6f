"""Splits of random and real tables: no leak, nobody forgotten, every order of the rows alike."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chips import layouts

from lookdown.chips.protocols import Split, balance, conventional, held_by_role, uda
from lookdown.errors import InputError


class Table(NamedTuple):
    ids: list[str]
    labels: list[str | None]
    groups: list[str]
    background: list[bool]

    def rows(self, order: Any) -> Table:
        return Table(*([column[k] for k in order] for column in self))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    size, classes, groups = draw(st.integers(20, 200)), draw(st.integers(2, 6)), draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    skew = rng.dirichlet(np.full(classes, draw(st.sampled_from([0.5, 5.0]))))
    labels: list[str | None] = [f"class {k}" for k in rng.choice(classes, size, p=skew)]
    background = (rng.random(size) < 0.2).tolist()
    for k in np.flatnonzero(rng.random(size) < 0.1):
        labels[k] = None
    return Table([f"{k:04}" for k in range(size)], labels, [f"g{k}" for k in rng.integers(0, groups, size)], background)


def table_of(counts: list[int], background: int, groups: int = 7) -> Table:
    labels: list[str | None] = [f"c{c:02}" for c, count in enumerate(counts) for _ in range(count)]
    labels += [None] * background
    size = len(labels)
    return Table(
        [f"{k:05}" for k in range(size)],
        labels,
        [f"g{k % groups}" for k in range(size)],
        [k >= size - background for k in range(size)],
    )


def split_or_nothing(make: Callable[..., Split], table: Table, **options: Any) -> Split | None:
    """Split, unless no class can be kept."""
    try:
        return make(*table, **options)
    except InputError as error:
        if not re.search("no class is left|two classes of at least", str(error)):
            raise
        return None


def check(table: Table, split: Split) -> None:
    """What holds for every split that keeps groups together."""
    roles_of: dict[str, set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = {"train": set(), "query": set(), "gallery": set()}
    for label, group, background, role, reason in zip(*table[1:], split.roles, split.reasons, strict=True):
        assert (role is None) == (reason is not None)
        if role is None:
            continue
        roles_of[group].add(role)
        if background:
            assert role == "gallery"
        else:
            assert label is not None
            classes[role].add(label)
    assert all(len(roles) == 1 for roles in roles_of.values())
    assert classes["train"] == set(split.train_classes)
    assert classes["query"] == classes["gallery"] == set(split.test_classes)  # each query has something to find
    for group, background, role in zip(table.groups, table.background, split.roles, strict=True):
        if background and role is None:
            assert roles_of[group] <= {"train", "query"}
    labels = {
        label for label, background in zip(table.labels, table.background, strict=True) if label and not background
    }
    for name in labels - {*split.train_classes, *split.test_classes}:
        count = sum(a == name and not b for a, b in zip(table.labels, table.background, strict=True))
        assert any(note.startswith(f"class {name} ({count} objects) is dropped: it ") for note in split.notes)


@settings(deadline=None, max_examples=150)
@given(tables(), st.integers(0, 5))
def test_conventional_splits_do_not_leak_and_forget_nobody(table: Table, seed: int) -> None:
    split = split_or_nothing(conventional, table, minimum=6, seed=seed)
    if split is None:
        return
    check(table, split)
    assert split.train_classes == split.test_classes
    for label, background, role in zip(table.labels, table.background, split.roles, strict=True):
        assert background or label not in split.train_classes or role is not None


@settings(deadline=None, max_examples=150)
@given(tables(), st.integers(0, 5))
def test_uda_splits_share_neither_classes_nor_groups(table: Table, seed: int) -> None:
    split = split_or_nothing(uda, table, minimum=6, seed=seed)
    if split is None:
        return
    check(table, split)
    assert not set(split.train_classes) & set(split.test_classes)
    kept = {*split.train_classes, *split.test_classes}
    objects = zip(table.labels, table.background, split.roles, strict=True)
    stray = sum(label in kept and not background and role is None for label, background, role in objects)
    noted = [note for note in split.notes if "on the other side" in note]
    assert [int(note.split()[0]) for note in noted] == ([stray] if stray else [])


def test_uda_without_train_classes_searches_everything() -> None:
    labels = [name for name in "ab" for _ in range(20)]
    ids = [f"{row:02d}" for row in range(40)]
    split = uda(ids, labels, [f"place {row % 10}" for row in range(40)], [False] * 40, train_classes=())
    assert set(split.roles) == {"query", "gallery"}
    assert (split.train_classes, split.test_classes) == ([], ["a", "b"])
    with pytest.raises(InputError, match="no class is left"):
        uda(ids, labels, ["one place"] * 40, [False] * 40, train_classes=())


@settings(deadline=None, max_examples=50)
@given(tables(), st.sampled_from([conventional, uda]), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter_and_a_seed_repeats(table: Table, make: Any, random: Any) -> None:
    split = split_or_nothing(make, table, minimum=5, seed=3)
    order = random.sample(range(len(table.ids)), len(table.ids))
    other = split_or_nothing(make, table.rows(order), minimum=5, seed=3)
    if split is None or other is None:
        assert split is other
        return
    assert other.roles == [split.roles[k] for k in order]
    assert other.reasons == [split.reasons[k] for k in order]
    assert (other.notes, other.train_classes, other.test_classes) == (
        split.notes,
        split.train_classes,
        split.test_classes,
    )
    assert make(*table, minimum=5, seed=3) == split


@pytest.mark.parametrize("make", [conventional, uda])
def test_another_seed_gives_another_split(make: Any) -> None:
    table = table_of([100, 80, 60, 40], 30, groups=45)
    assert len({str(make(*table, seed=seed).roles) for seed in range(5)}) == 5


def test_a_class_whose_groups_admit_one_solution_is_kept() -> None:
    """Both classes need the groups 1 and 2 in different roles, and their third group in the remaining one."""
    labels: list[str | None] = [*"aaa", *"bbb"]
    for seed in range(10):
        split = conventional([*"012345"], labels, [*"123124"], [False] * 6, minimum=3, seed=seed)
        assert split.train_classes == ["a", "b"]


def test_a_class_that_cannot_be_placed_beside_the_others_is_dropped_and_named() -> None:
    labels: list[str | None] = [*"aaa", *"bbb", *"ccc"]  # a and b force 3 and 4 into one role, c needs them apart
    split = conventional([f"{k}" for k in range(9)], labels, [*"123124345"], [False] * 9, minimum=3)
    assert len(split.train_classes) == 2
    assert any("shares its groups with other classes" in note for note in split.notes)


def test_small_classes_and_classes_in_two_groups_are_dropped_with_their_reasons() -> None:
    labels: list[str | None] = ["few"] * 9 + ["narrow"] * 20 + ["good"] * 30 + [None]
    groups = [f"{k}" for k in range(9)] + [f"n{k % 2}" for k in range(20)] + [f"g{k % 10}" for k in range(30)] + ["x"]
    split = conventional([f"{k:02}" for k in range(60)], labels, groups, [False] * 60)
    assert split.train_classes == ["good"]
    assert split.notes[0] == "class few (9 objects) is dropped: it has fewer than 10 objects"
    assert "class narrow (20 objects) is dropped: it sits in fewer than three groups" in split.notes[1]
    assert (split.reasons[0], split.reasons[59]) == ("class few has fewer than 10 objects", "has no label")
    assert split.notes[2] == "objects: train 18 (wanted 18), query 3 (wanted 3), gallery 9 (wanted 9)"


def test_single_chip_groups_give_the_ratios_to_the_object() -> None:
    table = table_of([100, 50, 200], 0)
    split = conventional(*table._replace(groups=table.ids), ratios=(0.5, 0.2, 0.3))
    counts = Counter(zip(table.labels, split.roles, strict=True))
    for c, size in enumerate([100, 50, 200]):
        assert [counts[f"c{c:02}", role] for role in ("train", "query", "gallery")] == [
            size * 0.5, size * 0.2, size * 0.3,
        ]  # fmt: skip


def test_background_with_a_group_of_its_own_is_searched_and_a_label_on_it_is_not_read() -> None:
    table = table_of([30, 30], 4, groups=12)
    table.groups[-4:] = ["alone", "alone", *table.groups[:2]]
    split = conventional(*table)
    assert split.roles[-4:-2] == ["gallery", "gallery"]
    table.labels[-4:] = ["c00"] * 4
    assert conventional(*table) == split


def test_given_train_classes_are_used_and_a_class_in_one_group_only_trains() -> None:
    table = table_of([40, 40, 40, 40], 0, groups=40)
    split = uda(*table, train_classes=["c03", "c01"])
    assert (split.train_classes, split.test_classes) == (["c01", "c03"], ["c00", "c02"])
    table.groups[:40] = ["one"] * 40
    for seed in range(6):
        assert "c00" in uda(*table, train_share=0.3, seed=seed).train_classes
    split = uda(*table, train_classes=["c03"])
    assert split.test_classes == ["c01", "c02"]
    assert "class c00 (40 objects) is dropped: it sits in one group" in split.notes[0]


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (conventional, {"ratios": (0.6, 0.1, 0.2)}, "sum 1"),
        (conventional, {"ratios": (0.7, 0.0, 0.3)}, "three positive"),
        (conventional, {"minimum": 1000}, "no class is left.*class c00 .40 objects. is dropped"),
        (uda, {"train_share": 1.0}, "between 0 and 1"),
        (uda, {"query_share": 0.0}, "between 0 and 1"),
        (uda, {"train_classes": ["c00", "c9"]}, "not among the labels: c9"),
        (uda, {"train_classes": ["c00", "c01"]}, "no class is left"),
        (uda, {"minimum": 1000}, "two classes of at least 1000"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(*table_of([40, 40], 3), **options)


def test_columns_of_different_lengths_and_repeated_ids_are_refused() -> None:
    table = table_of([40, 40], 3)
    with pytest.raises(InputError, match=r"one entry a chip.*'groups': 82"):
        conventional(*table._replace(groups=table.groups[1:]))
    with pytest.raises(InputError, match="'00001' occurs more than once"):
        conventional(*table._replace(ids=["00001", *table.ids[1:]]))


def read_csv(folder: str, name: str) -> list[dict[str, str]]:
    with (layouts.data_folder(folder) / name).open(newline="") as file:
        return list(csv.DictReader(file))


def fair1m() -> Table:
    rows = read_csv("fair1m_ships", "chips.csv")
    group_of = {row["image"]: row["scene_group"] for row in rows}
    empty = sorted(path.stem for path in (layouts.data_folder("fair1m_ships") / "background").glob("*.jpg"))
    images = [str(int(name.split("_")[1])) for name in empty]
    return Table(
        [row["chip"] for row in rows] + empty,
        [row["class"] for row in rows] + [None] * len(empty),
        [row["scene_group"] for row in rows] + [group_of.get(image, f"image {image}") for image in images],
        [False] * len(rows) + [True] * len(empty),
    )


def mar20() -> Table:
    group_of = {row["image"]: row["scene_group"] for row in read_csv("mar20", "scene_groups.csv")}
    found = Table([], [], [], [])
    for path in sorted((layouts.data_folder("mar20") / "Annotations" / "Horizontal Bounding Boxes").glob("*.xml")):
        for k, label in enumerate(re.findall(r"<name>(A\d+)</name>", path.read_text())):
            found.ids.append(f"{path.stem} {k}")
            found.labels.append(label)
            found.groups.append(group_of[path.stem])
            found.background.append(False)
    return found


@pytest.mark.parametrize(("read", "classes"), [(fair1m, 9), (mar20, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_real_data_is_split_near_the_ratios_with_every_class_everywhere(
    read: Callable[[], Table], classes: int, seed: int
) -> None:
    table = read()
    split = conventional(*table, seed=seed)
    check(table, split)
    assert len(split.train_classes) == classes
    pairs = zip(split.roles, table.background, strict=True)
    objects = Counter(role for role, background in pairs if not background)
    for role, ratio in (("train", 0.6), ("query", 0.1), ("gallery", 0.3)):
        assert abs(objects[role] / objects.total() - ratio) < 0.03, split.notes


@pytest.mark.parametrize(("read", "train", "test"), [(fair1m, 5, 4), (mar20, 12, 8)])
def test_real_data_is_split_by_classes_with_most_objects_kept(read: Callable[[], Table], train: int, test: int) -> None:
    table = read()
    split = uda(*table)
    check(table, split)
    assert (len(split.train_classes), len(split.test_classes)) == (train, test)
    kept = [role is not None for role, background in zip(split.roles, table.background, strict=True) if not background]
    assert np.mean(kept) > 0.6, split.notes


SHARES = np.array([0.6, 0.1, 0.3])


def cost(held: np.ndarray, wanted: np.ndarray) -> float:
    """Squared deviation over what was wanted; a class that misses a role altogether weighs more than all else."""
    return float(((held - wanted) ** 2 / wanted).sum() + 1e9 * ((held == 0) & (wanted > 0)).sum())


@pytest.mark.parametrize("seed", range(8))
def test_the_deviation_is_near_that_of_the_best_of_all_assignments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, size=(8, 3))
    counts[:3] += 1  # each class in three groups at least
    wanted = SHARES[:, None] * counts.sum(axis=0)
    found = cost(held_by_role(counts, balance(counts, wanted, np.random.default_rng(0))), wanted)
    best = min(cost(held_by_role(counts, np.array(roles)), wanted) for roles in product(range(3), repeat=8))
    assert found <= best + 0.5 * counts.shape[1]


def test_objects_are_counted_by_role_and_class() -> None:
    counts = np.array([[1, 2], [10, 20], [100, 200]])
    np.testing.assert_array_equal(held_by_role(counts, np.array([2, 0, 2])), [[10, 20], [0, 0], [101, 202]])
