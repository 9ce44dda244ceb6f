"""Recipes say what is wrong with them, and what a machine has of what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.runs import recipe

from lookdown.config import read_recipe
from lookdown.errors import InputError, LookdownError
from lookdown.losses import make_loss
from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.training.recipe import (
    RECIPES,
    MetricChoice,
    Recipe,
    nearest_device,
    recipe_file,
    refuse_missing_device,
)

FILES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage1": {"epochs": 0}, "stage2": {"epochs": 0}}, "nothing would be trained"),
        ({"stage2": {"learning_rate": 0.0}}, "stage2 needs"),
        ({"data": {"held_out": 1.0}}, "held_out must lie between 0 and 1"),
        ({"optimizer": {"momentum": 1.0}}, "momentum"),
        ({"stage2": {"lerning_rate": 0.1}}, "did you mean stage2.learning_rate"),
        ({"stage2": {"loss": "tripet"}}, "stage2: there is no loss 'tripet'; did you mean triplet"),
        ({"stage2": {"loss": "triplet", "options": {"margn": 1.0}}}, "has no option 'margn'; did you mean margin"),
        ({"stage2": {"loss": "glrt", "options": {"temperature": -1.0}}}, "stage2: temperature"),
        ({"network": {"dimension": 1}}, "network: dimension must be at least 2"),
        ({"metric": {"shrinkage": 1.5}}, "metric: shrinkage must be a number from 0 to 1, got 1.5"),
        ({"views": 3}, "views must be 1, 4 or 8, got 3"),
        ({"views": 4.0}, "views must be a whole number, found 4.0"),
        ({"views": True}, "views must be a whole number, found true"),
        ({"batches": {"samples": 1}}, "batches: classes and samples must be at least 2"),
        ({"batches": {"classes": 1}}, "batches: classes and samples must be at least 2"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_impossible_recipes_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LookdownError, match=message):
        recipe(**changes)


def test_the_defaults_are_a_frozen_trunk_and_the_glrt_loss() -> None:
    made = recipe()
    assert (made.trunk, made.stage2.loss, made.stage2.statistics) == ("frozen", "glrt", "exact")


def test_anchored_paths_hold_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = recipe(data={"manifest": "world"}, network={"weights": "some/trunk.safetensors"}).anchored()
    assert made.data.manifest == tmp_path / "world"
    assert made.network.weights == str(tmp_path / "some" / "trunk.safetensors")
    assert made.anchored() == made
    for weights in ("auto", "wheel", "hub", "none"):
        assert recipe(network={"weights": weights}).anchored().network.weights == weights


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_recipes_of_this_repository_can_be_read(file: Path) -> None:
    made = read_recipe(Recipe, file)
    make_loss(made.stage2.loss, made.stage2.options, classes=4, dimension=made.network.dimension)
    assert len(FILES) == 11


def test_a_file_of_ones_own_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recipe_file(Path("synthetic")) == RECIPES / "synthetic.toml"
    assert recipe_file(Path("recipes/synthetic.toml")) == RECIPES / "synthetic.toml"  # as the documentation writes it
    (tmp_path / "synthetic").write_text("mine")
    assert recipe_file(Path("synthetic")) == Path("synthetic")


def test_every_recipe_that_comes_with_lookdown_can_be_named() -> None:
    files = list(RECIPES.glob("*.toml"))
    assert [recipe_file(Path(file.stem)) for file in files] == files


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("synthetc", "did you mean synthetic?"),
        ("elsewhere/synthetic.toml", "neither a file"),
        ("nothing.toml", "mar20_cpu"),
    ],
)
def test_another_name_is_answered_by_those_that_are_known(given: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        recipe_file(Path(given))
    assert told in str(refused.value)


def test_the_metric_is_that_of_the_recipe() -> None:
    rng, labels = np.random.default_rng(0), np.arange(120) % 6
    embeddings = rng.normal(size=(6, 5))[labels] + 0.5 * rng.normal(size=(120, 5))
    made = MetricChoice(shrinkage=0.2, weighting="classes").fit(embeddings, labels, 0)
    expected = GaussianLikelihoodRatio(shrinkage=0.2, weighting="classes").fit(embeddings, labels)
    np.testing.assert_array_equal(made.score(embeddings, embeddings), expected.score(embeddings, embeddings))
    assert isinstance(MetricChoice(kind="mixture").fit(embeddings, labels, 0), MixtureLikelihoodRatio)


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        ("cpu", {"cuda", "mps"}, "cpu"),
        ("auto", set(), "cpu"),
        ("auto", {"cuda"}, "cuda"),
        ("auto", {"mps"}, "mps"),
        ("cuda", {"cuda"}, "cuda"),
        ("cuda", {"mps"}, "cpu"),
        ("mps", {"mps"}, "mps"),
    ],
)
def test_the_device_of_the_recipe_or_else_the_cpu(
    wanted: str, there: set[str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in there)
    assert nearest_device(wanted) == torch.device(found)
    if found == wanted or wanted == "auto":
        refuse_missing_device(wanted)
    else:
        with pytest.raises(InputError, match=f'device = "{wanted}" is not available on this machine; .*device=auto'):
            refuse_missing_device(wanted)
