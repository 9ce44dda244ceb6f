"""Values into a schema with every type, and back: equal, or refused by name."""

from __future__ import annotations

import math
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.config.every_type import RECIPES, Loss, Nothing, Recipe, Stage, Turn

from lookdown.config import build, to_toml
from lookdown.errors import LookdownError, RecipeError

VALID = {"data": "chips"}


def through_text(recipe: Recipe) -> Recipe:
    return build(Recipe, tomllib.loads(to_toml(recipe)))


@settings(max_examples=150, deadline=None)
@given(RECIPES)
def test_what_is_written_is_read_as_the_same(recipe: Recipe) -> None:
    again = through_text(recipe)
    assert again == recipe
    for one, other in ((again, recipe), (again.stage1, recipe.stage1)):  # -0.0 is not 0.0, and 1 is not 1.0
        for name in ("seed", "mean", "size", "learning_rate", "clip"):
            assert repr(getattr(one, name, None)) == repr(getattr(other, name, None))
    assert to_toml(again) == to_toml(recipe)


@given(st.floats())
def test_a_float_keeps_every_bit_that_counts_where_any_float_is_wanted(number: float) -> None:
    found = through_text(Recipe(data=Path("x"), teacher=None, stage1=Stage(clip=number))).stage1.clip
    assert repr(found) == repr(number)


def test_types_are_those_of_the_schema() -> None:
    values: dict[str, Any] = {
        "data": "chips",
        "mean": [1, 2, 3],
        "classes": ["a", "b"],
        "turns": [{"degrees": 90}],
        "weights": "random",
        "stage1": {"learning_rate": 1, "loss": {"shrinkage": 1, "options": {"a": [1, [2.0]], "b": {"c": True}}}},
        "stage2": {},
        "tracking": {},
    }
    recipe = build(Recipe, values)
    assert recipe.data == Path("chips")
    assert repr(recipe.mean) == "(1.0, 2.0, 3.0)"
    assert recipe.classes == ("a", "b")
    assert recipe.turns == (Turn(degrees=90.0),)
    assert recipe.weights == "random"
    assert recipe.teacher is None
    assert recipe.tracking == Nothing()
    assert recipe.stage2 == Stage()
    assert repr(recipe.stage1.learning_rate) == repr(recipe.stage1.loss.shrinkage) == "1.0"
    assert recipe.stage1.loss.options == {"a": (1, (2.0,)), "b": {"c": True}}
    assert values["stage1"]["loss"]["options"]["a"] == [1, [2.0]]


@pytest.mark.parametrize("size", [3, 3.0, (3, 4)])
def test_a_union_leaves_a_value_as_it_is_where_it_can(size: Any) -> None:
    assert repr(build(Recipe, {**VALID, "size": size}).size) == repr(size)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": 3.0}, "seed must be a whole number, found 3.0"),
        ({"seed": True}, "seed must be a whole number, found true"),
        ({"seed": 2**63}, "seed must be a whole number, found a whole number of more than 64 bits"),
        ({"seed": 16**9999}, "seed must be a whole number, found a whole number of more than 64 bits"),
        ({"seed": None}, "seed must be a whole number, found nothing"),
        ({"seed": np.int64(3)}, "seed must be a whole number, found a int64"),
        ({"resume": 1}, "resume must be true or false, found 1"),
        ({"notes": 1}, "notes must be text, found 1"),
        ({"data": ""}, 'data must be a path, found ""'),
        ({"data": 7}, "data must be a path, found 7"),
        ({"mean": [1, 2]}, "mean must be an array of 3 (each a number), found an array of 2"),
        ({"mean": [1, 2, False]}, "mean[2] must be a number, found false"),
        ({"classes": "a"}, 'classes must be an array (each text), found "a"'),
        ({"grid": [[1], [2, "x"]]}, 'grid[1][1] must be a whole number, found "x"'),
        ({"size": "big"}, "size must be a whole number or a number or an array of 2 (each a whole number), found"),
        ({"size": [1, 2.5]}, "size[1] must be a whole number, found 2.5"),
        ({"turns": [{}]}, "turns[0].degrees is missing; give it a number"),
        ({"named": {"x": 1}}, "named.x must be a table, found 1"),
        ({"named": {1: {"degrees": 1}}}, "named.1 is not a key: it must be text, found 1"),
        ({"stage1": 3}, "stage1 must be a table, found 3"),
        ({"stage1": {"learning_rate": math.nan}}, "stage1.learning_rate must be a number, found nan"),
        ({"stage1": {"learning_rate": -math.inf}}, "stage1.learning_rate must be a number, found -inf"),
        ({"stage1": {"learning_rate": 10**400}}, "stage1.learning_rate must be a number, found a whole number of more"),
        ({"stage1": {"precision": "float16"}}, 'stage1.precision must be "float32" or "bfloat16", found "float16"'),
        (
            {"stage1": {"loss": {"shrinkage": "auto"}}},
            'stage1.loss.shrinkage must be a number or "paper", found "auto"',
        ),
        ({"stage1": {"loss": {"options": {"a": [math.inf]}}}}, "stage1.loss.options.a[0] must be a number, found inf"),
        ({"stage1": {"loss": {"weights": {"a": "b"}}}}, 'stage1.loss.weights.a must be a number, found "b"'),
        ({"notes": date(1979, 5, 27)}, "notes must be text, found the date or time 1979-05-27, which text in quotes"),
        (
            {"stage1": {"loss": {"options": {"a": time(7, 32)}}}},
            "stage1.loss.options.a must be text, found the date or",
        ),
        ({"stage1": {"batches": {"samples": 1}}}, "stage1.batches: samples must be at least 2 to form a pair, got 1"),
        ({"stage2": {"epochs": -1}}, "stage2: epochs must not be negative, got -1"),
    ],
)
def test_a_value_of_another_type_is_refused_by_path(values: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        build(Recipe, {**VALID, **values})
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, LookdownError)
    assert isinstance(caught.value, ValueError)


def test_a_key_without_default_is_asked_for() -> None:
    with pytest.raises(RecipeError, match=r"^data is missing; give it a path$"):
        build(Recipe, {"seed": 1})


def test_a_long_text_is_shortened_in_the_message() -> None:
    with pytest.raises(RecipeError) as caught:
        build(Recipe, {**VALID, "seed": "x" * 10_000})
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(data=Path("x"), teacher=None, notes="\udcff"), "^notes cannot be written"),
        (Recipe(data=Path("x"), teacher=None, seed=2**63), "^seed cannot be written"),
        (Recipe(data=Path("x"), teacher=None, seed=None), "^seed cannot be written: TOML does not hold nothing"),  # type: ignore[arg-type]
        (Recipe(data=Path("x"), teacher=None, stage1=Stage(loss=Loss(options={"a": {"b": None}}))),
         "^stage1.loss.options.a.b cannot be written"),
        (Recipe(data=Path("x"), teacher=None, stage1=Stage(loss=Loss(options={"a": {3: 4}}))),
         "^3 cannot be written as a key"),
    ],
)  # fmt: skip
def test_what_toml_cannot_hold_is_not_written(recipe: Recipe, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        to_toml(recipe)


@pytest.mark.parametrize("value", [{"a": 1}, Recipe, 3])
def test_only_a_dataclass_is_written(value: object) -> None:
    with pytest.raises(TypeError, match="dataclass"):
        to_toml(value)


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    stage = Stage(learning_rate=np.float64(0.1), loss=Loss(options={"a": np.float64(0.2)}))
    assert through_text(Recipe(data=Path("x"), teacher=None, stage1=stage)).stage1 == stage
