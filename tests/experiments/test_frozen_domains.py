"""Domains on a frozen trunk: roles that do not leak, heads that are trained once."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown.chips.synthetic.world import World, make
from lookdown.experiments.frozen_domains import HEADS, Domain, divide, read_domain, trained_cases, validation_roles


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    shutil.copytree(world(), tmp_path / "ships")
    return read_domain(tmp_path / "ships", recipe())


def test_validation_is_cut_from_what_trains_and_neither_leaks(tmp_path: Path) -> None:
    make(World(kinds="ships", chips=40, size=32), tmp_path / "ships")
    domain = read_domain(tmp_path / "ships", recipe())
    test, validation = divide(domain, seed=0), validation_roles(domain, seed=0)
    assert set(validation.train) < set(test.train)
    assert not set(validation.target) & set(test.target)
    for roles in (test, validation):
        objects = roles.target[~domain.background[roles.target]]
        assert not set(domain.labels[roles.train]) & set(domain.labels[objects])
        assert not set(domain.groups[roles.train]) & set(domain.groups[roles.target])
        assert not domain.background[np.concatenate([roles.train, roles.query])].any()
        assert set(domain.labels[roles.query]) <= set(domain.labels[roles.gallery])


def test_heads_are_trained_once_and_differ_by_stage(domain: Domain, tmp_path: Path) -> None:
    roles = divide(domain, seed=0)
    kept = tmp_path / "kept" / "head.safetensors"
    first = trained_cases(domain, roles.train, [(domain, roles)], recipe(), 0, kept)
    before = kept.stat().st_mtime_ns
    again = trained_cases(domain, roles.train, [(domain, roles)], recipe(), 0, kept)
    assert kept.stat().st_mtime_ns == before
    for head in HEADS:
        assert np.array_equal(first[head][0].embeddings, again[head][0].embeddings)
        assert first[head][0].embeddings.shape == (len(domain.labels), 8)
        assert 0 < first[head][0].mean_average_precision(first[head][0].source) < 100
    assert not np.array_equal(first["identity"][0].embeddings, first["glrt"][0].embeddings)
