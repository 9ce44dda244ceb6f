"""The study of adaptation, in small."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown.lab.paper.adaptation_tables import VARIANTS, Study, few_labels, helped, sweep, variants
from lookdown.lab.paper.domains import Domain, read_domain
from lookdown.lab.synthetic.world import World, draw_world


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory) -> list[Domain]:
    folder = tmp_path_factory.mktemp("domains")
    shutil.copytree(world(), folder / "ships")
    draw_world(World(kinds="aircraft", chips=12, size=32), folder / "aircraft")
    return [read_domain(folder / name, recipe()) for name in ("ships", "aircraft")]


def test_every_variant_is_searched_by_and_true_labels_are_best(domains: list[Domain], tmp_path: Path) -> None:
    study = Study(domains, recipe(stage1={"epochs": 4}), tmp_path, seeds=2)
    cases = list(study.near(domains[0], "glrt", validation=False))
    found = variants(cases, clusters=8)
    assert list(found) == ["cosine", "source metric", *VARIANTS, "true labels (ceiling)"]
    assert all(len(values) == 2 and ((values > 0) & (values < 100)).all() for values in found.values())
    assert found["true labels (ceiling)"].mean() > found["cosine"].mean()
    counts = sweep(cases)
    around, factors = ["kinds -3", "kinds", "kinds +3"], [f"{factor} x kinds" for factor in (2, 3, 4, 6)]
    assert list(counts) == ["automatic", "(its number)", *around, *factors]
    assert (counts["(its number)"] >= 2).all()


def test_far_domains_are_answered_and_labels_are_used(domains: list[Domain], tmp_path: Path) -> None:
    study = Study(domains, recipe(), tmp_path, seeds=1)
    ((yes, apart, gain),) = helped(list(study.far(domains[0], domains[1], "glrt")))
    assert isinstance(yes, bool)
    assert -1 <= apart <= 1
    assert np.isfinite(gain)
    found = few_labels(domains[0], (0, 2, 6), seeds=2, dimension=8)
    assert list(found) == ["cosine", "0 labels a class", "2 labels a class", "6 labels a class"]
    values = np.array(list(found.values()))
    assert ((values > 0) & (values < 100)).all()
    assert len(np.unique(values[1:])) == values[1:].size, "labels and seeds make a difference"
