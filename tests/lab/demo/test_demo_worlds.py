from __future__ import annotations

from tests.lab.demo.conftest import SMALL, Heard

from lookdown.chips.manifest import Manifest
from lookdown.lab.demo.demo_worlds import TRAINED, UNSEEN
from lookdown.lab.synthetic.kinds import KINDS, ONE_FEATURE


def test_no_kind_is_in_both_worlds_and_twins_are_parted() -> None:
    assert not set(TRAINED) & set(UNSEEN)
    assert {*TRAINED, *UNSEEN} == set(KINDS)
    parted = [pair for pair in ONE_FEATURE if len({pair[0], pair[1]} & set(UNSEEN)) == 1]
    assert len(parted) > len(ONE_FEATURE) / 2


def test_the_first_world_trains_and_the_second_only_asks_under_another_sensor(heard: Heard) -> None:
    home, abroad = Manifest.read(heard.folder / "world"), Manifest.read(heard.folder / "abroad")
    assert set(home.table["role"].to_pylist()) == {"train", "query", "gallery"}
    assert set(abroad.table["role"].to_pylist()) == {"query", "gallery"}
    assert set(home.labels) - {None} == set(TRAINED)
    assert set(abroad.labels) - {None} == set(UNSEEN)
    assert set(home.table["sensor"].to_pylist()).isdisjoint(abroad.table["sensor"].to_pylist())
    assert len(list((heard.folder / "world" / "scenes").glob("*.tif"))) == SMALL.home.scenes
