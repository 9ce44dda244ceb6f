"""A recipe from a file, with `--set` over it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from tests.config.every_type import RECIPES, TEXT, Recipe, Stage

from lookdown.config import build, read_recipe, to_toml
from lookdown.errors import RecipeError

TEXT_OF_A_RECIPE = """
data = "chips"  # made by lookdown prepare
seed = 3

[stage1]
epochs = 2

[stage1.loss]
options = {margin = 0.5, deep = {a = 1}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.toml"
    path.write_text(TEXT_OF_A_RECIPE)
    return path


def test_a_file_is_read_as_its_values_are(file: Path) -> None:
    assert read_recipe(Recipe, file) == build(Recipe, tomllib.loads(TEXT_OF_A_RECIPE))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECIPES)
def test_a_recipe_on_disk_is_read_as_it_was(tmp_path: Path, recipe: Recipe) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(to_toml(recipe), encoding="utf-8")
    assert read_recipe(Recipe, file) == recipe


def test_what_is_set_counts_and_the_rest_stays(file: Path) -> None:
    overrides = [
        "seed=1", "seed = 4", "stage1.learning_rate=1", "resume=true", "mean=[1, 2, 3.5]", "stage2.epochs=7",
        "stage1.loss.options.margin=0.25", "stage1.loss.options.deep.b=[1, 2]", "stage1.loss.options.new.x='y'",
        "turns=[{degrees = 90}]", "named.north.degrees=0",
    ]  # fmt: skip
    recipe = read_recipe(Recipe, file, overrides)
    assert recipe.seed == 4
    assert recipe.resume is True
    assert recipe.mean == (1.0, 2.0, 3.5)
    assert recipe.stage2 == Stage(epochs=7)
    assert (recipe.stage1.epochs, recipe.stage1.learning_rate) == (2, 1.0)
    assert recipe.stage1.loss.options == {"margin": 0.25, "deep": {"a": 1, "b": (1, 2)}, "new": {"x": "y"}}
    assert recipe.turns[0].degrees == recipe.named["north"].degrees + 90


def test_a_table_that_is_set_takes_the_place_of_the_table(file: Path) -> None:
    assert read_recipe(Recipe, file, ["stage1={learning_rate = 0.5}"]).stage1 == Stage(learning_rate=0.5)
    assert read_recipe(Recipe, file, ["tracking='off'", "tracking={}"]).tracking != "off"


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("notes=two words", "two words"),
        ('notes="7"', "7"),
        ("notes=a=b#c", "a=b#c"),
        ("notes=", ""),
        ("data=/some/where else", Path("/some/where else")),
        ("weights=random", "random"),
        ("weights=run/embedder", Path("run/embedder")),
        ("teacher=t", Path("t")),
    ],
)
def test_text_needs_no_quotes_where_text_is_wanted(file: Path, override: str, found: object) -> None:
    recipe = read_recipe(Recipe, file, [override])
    assert getattr(recipe, override.split("=")[0]) == found
    assert read_recipe(Recipe, file, ["stage1.loss.shrinkage=paper"]).stage1.loss.shrinkage == "paper"
    assert read_recipe(Recipe, file, ["stage1.precision=bfloat16"]).stage1.precision == "bfloat16"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stage2.lerning_rate=0.1", "stage2.lerning_rate is unknown; did you mean stage2.learning_rate?"),
        ("stge1.epochs=1", "stge1 is unknown; did you mean stage1?"),
        ("learning_rate=1", "learning_rate is unknown; did you mean stage1.learning_rate or stage2.learning_rate?"),
        ("stage1={epoch=1}", "stage1.epoch is unknown; did you mean stage1.epochs?"),
        ("seed", "a key and a value are needed; write --set table.key=value"),
        ("=3", "a key and a value are needed; write --set table.key=value"),
        ("stage1..epochs=3", "a key and a value are needed; write --set table.key=value"),
        ("notes=7", "notes must be text, found 7; if it is text, write --set 'notes=\"7\"'"),
        ("seed=1.5", "seed must be a whole number, found 1.5"),
        ("seed=0,1", "seed must be a whole number, and 0,1 is no TOML value"),
        ("seed=", "seed must be a whole number, and nothing is no TOML value"),
        ("seed=1\nnotes=2", "seed must be a whole number, and 1\nnotes=2 is no TOML value"),
        (f"seed={'[' * 9000}", "seed must be a whole number, and [[["),
        ("data=", 'data must be a path, found ""'),
        ("classes=[a]", "classes must be an array (each text), and [a] is no TOML value"),
        ("stage1.loss.options.kind=hard", "stage1.loss.options.kind must be text in quotes, a number, true or false,"),
        ("stage1.loss.options.margin=nan", "stage1.loss.options.margin must be a number, found nan"),
        ("stage1.loss.shrinkage=papr", 'stage1.loss.shrinkage must be a number or "paper", found "papr"'),
        ("stage1.epochs.x=3", "stage1.epochs has no keys; it must be a whole number, set as a whole"),
        ("mean.0=3", "mean has no keys; it must be an array of 3 (each a number), set as a whole"),
        ("stage1=3", "stage1 must be a table, found 3"),
        ("notes=\udcff", "the value is not Unicode"),
    ],
)
def test_what_cannot_be_set_is_refused_as_it_was_typed(file: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file, [override])
    assert str(caught.value).startswith(f"--set {override}: {message}")


def test_an_error_of_the_whole_names_the_file_and_what_was_set(file: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file, ["seed=1", "stage1.epochs=-1"])
    assert str(caught.value) == (
        f"{file} with --set seed=1 --set stage1.epochs=-1: stage1: epochs must not be negative, got -1"
    )
    file.write_text('data = "x"\n[stage1]\nepoch = 3\n')
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file)
    assert str(caught.value) == f"{file}: stage1.epoch is unknown; did you mean stage1.epochs?"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXT, TEXT)
def test_whatever_is_typed_there_is_an_answer(file: Path, name: str, text: str) -> None:
    for override in (f"{name}={text}", f"notes={text}", f"stage1.{name}={text}", f"stage1.loss.options.{name}={text}"):
        said = f"--set {override}: "
        try:
            assert read_recipe(Recipe, file, [override]).data is not None
        except RecipeError as error:
            said = str(error)
        assert said.startswith(f"--set {override}: ")
