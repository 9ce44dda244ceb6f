"""What a run learns from, and what is wrong with it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import ImageError, InputError
from lookdown.networks import Embedder
from lookdown.training.recipe import Recipe
from lookdown.training.training_data import TrainingData, hold_out, read_training_data, refuse_untrainable


def chips(**columns: Sequence[str | None]) -> Manifest:
    """Return the training chips of the world, some columns changed."""
    manifest = Manifest.read(world()).with_role("train")
    table = manifest.table
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
    return Manifest(table, manifest.root)


def read(made: Recipe, manifest: Manifest) -> tuple[TrainingData, list[str]]:
    told: list[str] = []
    embedder = Embedder("mobilenetv2_035", size=32, dimension=8, weights="none")
    return read_training_data(made, embedder, manifest, progress=lambda *_: None, note=told.append), told


@pytest.mark.parametrize("trunk", ["frozen", "finetune"])
def test_chips_are_divided_by_place_and_none_is_lost(trunk: str) -> None:
    manifest = chips()
    data, told = read(recipe(trunk=trunk), manifest)
    assert not told
    assert sorted(data.fit.ids + data.validation.ids) == sorted(manifest.table["id"].to_pylist())
    rows = {chip: row for row, chip in enumerate(manifest.table["id"].to_pylist())}
    kept_back = [rows[chip] for chip in data.validation.ids]
    assert data.classes == [manifest.labels[row] for row in kept_back]
    assert data.groups == [manifest.groups[row] for row in kept_back]
    assert not {manifest.groups[rows[chip]] for chip in data.fit.ids} & set(data.groups)
    names = sorted(set(manifest.labels), key=str)
    assert [names[label] for label in data.validation.labels] == data.classes
    for part in (data.fit, data.validation):
        assert len(part.samples) == len(part.labels) == len(part.ids)
        assert sum(len(indices) for indices, _ in part.samples.plain()) == len(part.ids)


def test_what_cannot_be_trained_on_shows_without_reading() -> None:
    count = len(chips())
    for columns, message in (
        ({"label": ["ship"] * count}, f"all {count} training chips are of one class, ship; "),
        ({"label": [None] * count}, "has training chips without a class; "),
        ({"scene_group": ["here"] * count}, "30 % of 1 training places cannot be held out"),
    ):
        with pytest.raises(InputError, match=message):
            refuse_untrainable(chips(**columns), recipe())
    with pytest.raises(InputError, match="has no chips to train on; "):
        refuse_untrainable(Manifest.read(world()).with_role("train").with_role("gallery"), recipe())
    refuse_untrainable(chips(), recipe())


@pytest.mark.parametrize("trunk", ["frozen", "finetune"])
def test_chips_of_which_none_can_be_read_are_a_sentence(trunk: str, tmp_path: Path) -> None:
    data = tmp_path / "world"
    shutil.copytree(world(), data, ignore=shutil.ignore_patterns("features"))
    manifest = Manifest.read(data).with_role("train")
    for path in manifest.paths:
        path.write_bytes(b"no picture")
    with pytest.raises(ImageError, match=f"none of the {len(manifest)} .*chips can be read, the first: .*"):
        read(recipe(trunk=trunk, data={"manifest": str(data)}), manifest)


def test_bands_that_are_not_the_recipes_are_refused() -> None:
    with pytest.raises(InputError, match=r"has 3 bands, this embedder takes 4"):
        read(recipe(trunk="finetune", network={"bands": 4}), chips())


def test_fine_tuning_gets_the_chips_themselves() -> None:
    data, _ = read(recipe(trunk="finetune"), chips())
    indices, images = next(iter(data.fit.samples.plain()))
    assert images.shape == (len(indices), 3, 32, 32)
    assert np.array_equal(indices, np.arange(len(indices)))


@given(seed=st.integers(0, 1000), groups=st.integers(12, 30), share=st.floats(0.15, 0.5))
def test_whole_groups_are_held_out_and_every_class_stays(seed: int, groups: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    labels = [f"class {number % 4}" for number in range(8 * groups)]
    places = [f"place {number // 8}" for number in range(8 * groups)]
    kept = hold_out(labels, places, share, seed)
    assert kept.sum() <= share * len(labels)
    assert kept.sum() >= share * len(labels) - 8
    by_place = {place: {bool(kept[row]) for row in range(len(places)) if places[row] == place} for place in set(places)}
    assert all(len(sides) == 1 for sides in by_place.values())
    assert {labels[row] for row in np.flatnonzero(~kept)} == set(labels)
    order = rng.permutation(len(labels))
    again = hold_out([labels[row] for row in order], [places[row] for row in order], share, seed)
    np.testing.assert_array_equal(again, kept[order])


def test_one_place_cannot_be_divided() -> None:
    with pytest.raises(InputError, match="20 % of 1 training places cannot be held out"):
        hold_out(["a", "b"] * 5, ["here"] * 10, 0.2, 0)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_back_must_have_pairs_of_both_kinds(seed: int) -> None:
    """Of two chips there is one pair, so that either nothing can be found or nothing mistaken for it."""
    labels, places = [f"class {row % 10}" for row in range(40)], [f"place {row}" for row in range(40)]
    with pytest.raises(InputError, match=r"two classes in them, one of which has two chips; .* or raise data.held_out"):
        hold_out(labels, places, 0.05, seed)


def test_a_single_class_has_a_sentence_of_its_own() -> None:
    with pytest.raises(InputError, match="all 10 training chips are of one class, ship; "):
        hold_out(["ship"] * 10, [f"place {row}" for row in range(10)], 0.5, 0)
