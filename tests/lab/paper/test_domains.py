"""Domains: roles that do not leak, chips or features by the recipe, and a fingerprint of all of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown.chips.protocols import conventional, uda
from lookdown.errors import InputError
from lookdown.lab.paper.domains import Protocol, divide, read_domain, validation_roles
from lookdown.lab.synthetic.world import World, draw_world


@pytest.mark.parametrize("protocol", [uda, conventional])
def test_validation_is_cut_from_what_trains_and_neither_leaks(tmp_path: Path, protocol: Protocol) -> None:
    draw_world(World(kinds="ships", chips=40, size=32), tmp_path / "ships")
    domain = read_domain(tmp_path / "ships", recipe())
    test, validation = divide(domain, 0, protocol=protocol), validation_roles(domain, 0, protocol)
    assert set(validation.train) < set(test.train)
    assert not set(validation.target) & set(test.target)
    for roles in (test, validation):
        objects = roles.target[~domain.background[roles.target]]
        shared = set(domain.labels[roles.train]) & set(domain.labels[objects])
        assert shared == (set() if protocol is uda else set(domain.labels[roles.train]))
        assert not set(domain.groups[roles.train]) & set(domain.groups[roles.target])
        assert not domain.background[np.concatenate([roles.train, roles.query])].any()
        assert set(domain.labels[roles.query]) <= set(domain.labels[roles.gallery])


def test_a_network_that_is_trained_gets_chips_and_a_frozen_one_features(tmp_path: Path) -> None:
    shutil.copytree(world(), tmp_path / "ships")
    frozen = read_domain(tmp_path / "ships", recipe())
    seen: list[tuple[Any, ...]] = []
    chips = read_domain(tmp_path / "ships", recipe(trunk="finetune"), progress=lambda *call: seen.append(call))
    assert (frozen.ids == chips.ids).all()
    rows = np.array([3, 1])
    assert next(frozen.samples(rows).plain())[1].ndim == 2
    assert next(chips.samples(rows).plain())[1].shape == (2, 3, 32, 32)
    assert seen[-1] == (len(chips), len(chips), "chips")
    assert frozen.fingerprint != chips.fingerprint
    assert frozen.fingerprint == read_domain(tmp_path / "ships", recipe()).fingerprint


def test_chips_without_any_label_are_refused_by_name(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shutil.copytree(world(), tmp_path / "ships")
    file = tmp_path / "ships" / "manifest.parquet"
    table = pq.read_table(file)
    place = table.column_names.index("label")
    pq.write_table(table.set_column(place, "label", pa.array([None] * len(table), pa.string())), file)
    with pytest.raises(InputError, match=r"ships has no labelled chips.*prepare it with labels"):
        read_domain(tmp_path / "ships", recipe())
