"""Metrics side by side, one in use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.gallery.galleries import kinds

from lookdown import Cosine, GaussianLikelihoodRatio
from lookdown.errors import GalleryError
from lookdown.gallery.store.metric_registry import MetricRegistry


def registry_with_two(folder: Path) -> MetricRegistry:
    registry = MetricRegistry(folder / "metrics")
    registry.use(registry.add(Cosine().fit(np.ones((1, 8))), "cosine", "the cosine").name)
    registry.add(
        GaussianLikelihoodRatio().fit(*kinds(200)), "taught", "by two labels", base="1-cosine", taught_by=["a", "b"]
    )
    return registry


def test_metrics_are_numbered_and_a_new_one_is_not_in_use_yet(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    assert registry.names() == ["1-cosine", "2-taught"]
    assert registry.current == "1-cosine"
    registry.use("2-taught")
    assert registry.current == "2-taught"
    assert isinstance(registry.load("2-taught"), GaussianLikelihoodRatio)


def test_what_is_known_of_a_metric_is_read_back(tmp_path: Path) -> None:
    about = registry_with_two(tmp_path).info("2-taught")
    assert (about.about, about.base, about.taught_by) == ("by two labels", "1-cosine", ("a", "b"))
    assert not about.calibrated


def test_numbers_rise_as_numbers(tmp_path: Path) -> None:
    registry = MetricRegistry(tmp_path)
    names = [registry.add(Cosine().fit(np.ones((1, 2))), "cosine", "one of many").name for _ in range(11)]
    assert registry.names() == names
    assert names[-1] == "11-cosine"


def test_an_unknown_metric_is_refused_by_name(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    for act in (registry.use, registry.load, registry.info):
        with pytest.raises(GalleryError, match="no metric '3-none'; it has 1-cosine, 2-taught"):
            act("3-none")
    assert registry.current == "1-cosine"


@pytest.mark.parametrize("name", ["../elsewhere", "current", "", "2-taught/../1-cosine"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(GalleryError, match="has no metric"):
        registry_with_two(tmp_path).use(name)


def test_a_metric_without_its_note_is_not_listed_and_its_number_not_given_again(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    (registry.folder / "2-taught.json").unlink()  # killed between the metric and its note
    assert registry.names() == ["1-cosine"]
    assert registry.add(Cosine().fit(np.ones((1, 2))), "adapted", "again").name == "3-adapted"


def test_a_damaged_note_and_a_missing_choice_say_what_to_do(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    (registry.folder / "2-taught.json").write_text("{")
    with pytest.raises(GalleryError, match=r"2-taught\.json is damaged .*; use another metric: 1-cosine"):
        registry.use("2-taught")
    (registry.folder / "current").unlink()
    with pytest.raises(GalleryError, match="choose a metric again with `lookdown gallery metrics"):
        _ = registry.current


def test_a_metric_is_forgotten_and_its_number_never_given_again(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    registry.forget("2-taught")
    assert registry.names() == ["1-cosine"]
    assert not (registry.folder / "2-taught").exists()
    assert registry.add(Cosine().fit(np.ones((1, 8))), "adapted", "again").name == "3-adapted"
    with pytest.raises(GalleryError, match="no metric '2-taught'"):
        registry.load("2-taught")


def test_the_first_metric_and_the_one_in_use_stay(tmp_path: Path) -> None:
    registry = registry_with_two(tmp_path)
    with pytest.raises(GalleryError, match="1-cosine is the metric that all others are estimated from"):
        registry.forget("1-cosine")
    registry.use("2-taught")
    with pytest.raises(GalleryError, match="2-taught is in use; put another metric into use first"):
        registry.forget("2-taught")
    with pytest.raises(GalleryError, match="has no metric"):
        registry.forget("../metrics/2-taught")
    assert registry.names() == ["1-cosine", "2-taught"]


def test_a_metric_that_cannot_be_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = registry_with_two(tmp_path)

    def fail(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(GalleryError, match="cannot be removed: Permission denied; check that you may write"):
        registry.forget("2-taught")
    assert registry.names() == ["1-cosine", "2-taught"]
