"""The splits of the paper: exact sizes, in proportion, refused where they cannot be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.chips import layouts
from tests.chips.test_protocols import table_of

from lookdown.chips.sources import read_source
from lookdown.errors import InputError
from lookdown.lab.paper.paper_split import PaperProtocol, PaperSplit, paper_split

SIZES = {
    "CBRSOR-FGSRSI": (516, 202, 320, 2065, 16, 16),
    "UDA-CBRSOR-FGSRSI": (545, 96, 397, 2065, 9, 7),
    "CBRSOR-MAR": (7870, 633, 1194, 464, 20, 20),
    "UDA-CBRSOR-MAR": (6103, 233, 3361, 464, 12, 8),
}  # section 5 of the notes on the paper


@pytest.mark.parametrize("protocol", get_args(PaperProtocol))
def test_the_sizes_are_those_of_the_paper(protocol: Any) -> None:
    *sizes, background, train_classes, test_classes = SIZES[protocol]
    classes = train_classes if train_classes == test_classes else train_classes + test_classes
    spread = np.linspace(1, 3, classes)
    counts = np.ceil(spread / spread.sum() * sum(sizes) * 1.05).astype(int).tolist()
    table = table_of([*counts, 9], background + 5)
    split = paper_split(*table, protocol=protocol, seed=1)
    rows = list(zip(table.labels, table.background, split.roles, split.reasons, strict=True))
    objects = Counter(role for _, is_background, role, _ in rows if not is_background)
    assert [objects[role] for role in ("train", "query", "gallery")] == sizes
    assert Counter(role for _, is_background, role, _ in rows if is_background) == {"gallery": background, None: 5}
    assert all((role is None) == (reason is not None) for _, _, role, reason in rows)
    for role, expected in zip(("train", "query", "gallery"), (train_classes, test_classes, test_classes), strict=True):
        found = {label for label, is_background, given_role, _ in rows if given_role == role and not is_background}
        assert len(found) == expected
        assert found == set(split.train_classes if role == "train" else split.test_classes)
    assert any("leak" in note for note in split.notes)
    order = np.random.default_rng(0).permutation(len(table.ids)).tolist()
    assert paper_split(*table.rows(order), protocol=protocol, seed=1).roles == [split.roles[k] for k in order]
    assert paper_split(*table, protocol=protocol, seed=2).roles != split.roles


def test_the_paper_s_split_is_in_proportion_to_the_classes() -> None:
    counts = [31] + [67] * 14 + [69]  # exactly the 1,038 chips that there are
    table = table_of(counts, 2065)
    found = Counter(zip(table.labels, paper_split(*table, protocol="CBRSOR-FGSRSI").roles, strict=True))
    for c, count in enumerate(counts):
        for role, size in (("train", 516), ("query", 202), ("gallery", 320)):
            assert abs(found[f"c{c:02}", role] - size * count / 1038) < 1.5


@pytest.mark.parametrize(
    ("counts", "background", "options", "message"),
    [
        ([60] * 16, 2065, {"protocol": "CBRSOR-FGSRSI"}, "need 1038 chips of these classes; 78 are missing"),
        ([70] * 16, 2000, {"protocol": "CBRSOR-FGSRSI"}, "65 are missing"),
        ([70] * 15, 2065, {"protocol": "CBRSOR-FGSRSI"}, "has 16 classes of at least 10 chips, got 15"),
        ([65] * 16, 2065, {"protocol": "UDA-CBRSOR-FGSRSI"}, "at best 38 are missing"),
        ([80] * 16, 2065, {"protocol": "UDA-CBRSOR-FGSRSI", "train_classes": ["c00"]}, "trains on 9 classes, got 1"),
        ([80] * 16, 2065, {"protocol": "UDA-CBRSOR-FGSRSI", "train_classes": ["no"]}, "not among the labels: no"),
        ([80] * 16, 2065, {"protocol": "CBRSOR-FGSRSI", "train_classes": ["c00"]}, "trains on every class"),
        ([80] * 16, 2065, {"protocol": "CBRSOR"}, "protocol 'CBRSOR' is unknown"),
    ],
)
def test_what_the_paper_s_sizes_do_not_allow_is_refused(
    counts: list[int], background: int, options: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        paper_split(*table_of(counts, background), **options)


def test_a_source_without_the_objects_is_refused_before_anything_is_cut(tmp_path: Path) -> None:
    layouts.voc(tmp_path, 24, mar20=True)
    with pytest.raises(InputError, match="CBRSOR-MAR has 20 classes of at least 10 chips, got 3"):
        PaperSplit("CBRSOR-MAR").background_share(read_source("mar20", tmp_path))


def test_background_is_cut_from_scenes_only(tmp_path: Path) -> None:
    layouts.folders(tmp_path, 70, tuple(f"c{k:02}" for k in range(16)))
    with pytest.raises(InputError, match="needs 2065 background chips; 2065 are missing"):
        PaperSplit("CBRSOR-FGSRSI").background_share(read_source("folder", tmp_path))
