"""The study of training on the synthetic world, in small."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from tests.training.runs import recipe, world

from lookdown.config import to_toml
from lookdown.lab.paper.synthetic_training import VARIANTS, run


def test_every_variant_is_trained_and_searched_by_both_metrics(tmp_path: Path) -> None:
    shutil.copytree(world(), tmp_path / "world")
    (tmp_path / "quick.toml").write_text(to_toml(recipe()))
    found = run(tmp_path / "quick.toml", tmp_path / "world", (0, 1), VARIANTS, ["stage1.epochs=6", "stage2.epochs=2"])
    assert list(found) == list(VARIANTS)
    values = np.array(list(found.values()))
    assert values.shape == (4, 2, 2)
    assert ((values > 0.03) & (values < 1)).all()
    assert len(np.unique(values)) == values.size, "variants and seeds differ"
