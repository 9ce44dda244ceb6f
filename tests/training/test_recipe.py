"""Recipes say what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.training.runs import recipe

from lookdown.config import read_recipe
from lookdown.errors import LookdownError
from lookdown.losses import make_loss
from lookdown.training.recipe import Recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage1": {"epochs": 0}, "stage2": {"epochs": 0}}, "nothing would be trained"),
        ({"stage2": {"learning_rate": 0.0}}, "stage2 needs"),
        ({"data": {"held_out": 1.0}}, "held_out must lie between 0 and 1"),
        ({"optimizer": {"momentum": 1.0}}, "momentum"),
        ({"stage2": {"lerning_rate": 0.1}}, "did you mean stage2.learning_rate"),
    ],
)
def test_impossible_recipes_are_refused(changes: dict[str, dict[str, float]], message: str) -> None:
    with pytest.raises(LookdownError, match=message):
        recipe(**changes)


def test_the_defaults_are_a_frozen_trunk_and_the_glrt_loss() -> None:
    made = recipe()
    assert (made.trunk, made.stage2.loss, made.stage2.statistics) == ("frozen", "glrt", "exact")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_the_recipes_of_this_repository_can_be_read(file: Path) -> None:
    made = read_recipe(Recipe, file)
    make_loss(made.stage2.loss, made.stage2.options, classes=4, dimension=made.network.dimension)
    assert len(RECIPES) == 7
