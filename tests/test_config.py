"""Recipes: values and files into a schema with every type, and back: equal, or refused by name."""

from __future__ import annotations

import math
import string
import tomllib
from dataclasses import field, fields, make_dataclass
from datetime import date, time
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.every_type import FREE, RECIPES, TEXT, Batches, Loss, Nothing, Recipe, Stage, Turn

from lookdown.config import (
    build,
    describe,
    misfit,
    read_file,
    read_recipe,
    read_value,
    to_toml,
    write_table,
)
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


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_every_bit(number: float) -> None:
    again = through_text(Recipe(data=Path("x"), stage1=Stage(clip=number))).stage1.clip
    assert repr(again) == repr(number)


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
        ({"seed": 2**63}, "seed cannot hold a whole number of more than 64 bits; TOML has no such value"),
        ({"seed": 16**9999}, "seed cannot hold a whole number of more than 64 bits; TOML has no such value"),
        ({"seed": None}, "seed cannot hold a value of type NoneType; TOML"),
        ({"seed": np.int64(3)}, "seed cannot hold a value of type int64"),
        ({"resume": 1}, "resume must be true or false, found 1"),
        ({"notes": 1}, "notes must be text, found 1"),
        ({"data": ""}, 'data must be a path, found ""'),
        ({"data": 7}, "data must be a path, found 7"),
        ({"mean": [1, 2]}, "mean[2] is missing; add it"),
        ({"mean": [1, 2, 3, 4]}, "mean must be an array of 3, found [1, 2, 3, 4]"),
        ({"mean": [1, 2, False]}, "mean[2] must be a number, found false"),
        ({"classes": "a"}, 'classes must be an array, found "a"'),
        ({"grid": [[1], [2, "x"]]}, 'grid[1][1] must be a whole number, found "x"'),
        ({"size": "big"}, "size must be a whole number or a number or an array, found"),
        ({"size": [1, 2.5]}, "size[1] must be a whole number, found 2.5"),
        ({"turns": [{}]}, "turns[0].degrees is missing; add it"),
        ({"named": {"x": 1}}, "named.x must be a table, found 1"),
        ({"named": {1: {"degrees": 1}}}, "named has a key that is not text: 1"),
        ({"stage1": 3}, "stage1 must be a table, found 3"),
        ({"stage1": {"learning_rate": math.nan}}, "stage1.learning_rate must be a number, found nan"),
        ({"stage1": {"learning_rate": -math.inf}}, "stage1.learning_rate must be a number, found -inf"),
        ({"stage1": {"learning_rate": 10**400}}, "stage1.learning_rate cannot hold a whole number of more"),
        ({"stage1": {"precision": "float16"}}, 'stage1.precision must be "float32" or "bfloat16", found "float16"'),
        (
            {"stage1": {"loss": {"shrinkage": "auto"}}},
            'stage1.loss.shrinkage must be a number or "paper", found "auto"',
        ),
        ({"stage1": {"loss": {"options": {"a": [math.inf]}}}}, "stage1.loss.options.a[0] must be a number, found inf"),
        ({"stage1": {"loss": {"weights": {"a": "b"}}}}, 'stage1.loss.weights.a must be a number, found "b"'),
        ({"notes": date(1979, 5, 27)}, "notes cannot hold a value of type date"),
        (
            {"stage1": {"loss": {"options": {"a": time(7, 32)}}}},
            "stage1.loss.options.a cannot hold a value of type time",
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


def test_only_fields_that_the_constructor_takes_are_keys() -> None:
    schema = make_dataclass("Counted", [("size", int, 1), ("area", int, field(init=False, default=7))])
    assert to_toml(schema(size=2)) == "size = 2\n"
    with pytest.raises(RecipeError, match="area is unknown"):
        build(schema, {"area": 3})


def test_a_field_that_is_none_is_a_key_left_out() -> None:
    schema = make_dataclass("Optional", [("x", int | None, None)])
    assert vars(build(schema, {})) == {"x": None}
    assert to_toml(schema()) == ""
    assert vars(build(schema, tomllib.loads(to_toml(schema(x=3))))) == {"x": 3}


def test_a_key_without_default_is_asked_for() -> None:
    with pytest.raises(RecipeError, match=r"^data is missing; add it$"):
        build(Recipe, {"seed": 1})


def test_a_long_text_is_shortened_in_the_message() -> None:
    with pytest.raises(RecipeError) as caught:
        build(Recipe, {**VALID, "seed": "x" * 10_000})
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(data=Path("x"), notes="\udcff"), "^notes cannot hold text that is not Unicode"),
        (Recipe(data=Path("x"), seed=2**63), "^seed cannot hold a whole number of more than 64 bits"),
        (Recipe(data=Path("x"), seed=None), "^seed cannot hold a value of type NoneType"),  # type: ignore[arg-type]
        (Recipe(data=Path("x"), stage1=Stage(loss=Loss(options={"a": {"b": None}}))),  # type: ignore[dict-item]
         "^stage1.loss.options.a.b cannot hold a value"),
        (Recipe(data=Path("x"), stage1=Stage(loss=Loss(options={"a": {3: 4}}))),  # type: ignore[dict-item]
         "^stage1.loss.options.a has a key that is not text: 3"),
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
    assert through_text(Recipe(data=Path("x"), stage1=stage)).stage1 == stage


LETTERS = string.ascii_letters + string.digits + "_-.éß "
TABLES: dict[tuple[str | int, ...], Any] = {
    (): Recipe,
    ("stage1",): Stage,
    ("stage2", "loss"): Loss,
    ("stage2", "batches"): Batches,
    ("turns", 0): Turn,
    ("named", "a"): Turn,
}


def complaint(values: dict[str, Any]) -> str:
    with pytest.raises(RecipeError) as caught:
        build(Recipe, values)
    return str(caught.value)


def misspelt(data: st.DataObject, word: str) -> str:
    """One letter left out, added, mistaken, or swapped with the next."""
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from(LETTERS))
    return data.draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
            ]
        )
    )


def likeness(key: str, typed: str) -> float:
    return SequenceMatcher(None, key, typed.lower().replace("-", "_")).ratio()


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_any_slip_in_any_key_is_answered_with_the_right_key_or_one_as_near(data: st.DataObject) -> None:
    position = data.draw(st.sampled_from(list(TABLES)))
    keys = [field.name for field in fields(TABLES[position])]
    right = data.draw(st.sampled_from(keys))
    wrong = misspelt(data, right)
    if wrong in keys:
        return
    values: Any = {wrong: 0}
    for part in reversed(position):
        values = [values] if isinstance(part, int) else {part: values}
    table = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in position).lstrip(".")
    prefix = f"{table}." if table else ""
    sentence = complaint({"data": "chips", **values})
    assert sentence.startswith(f"{prefix}{wrong} is unknown; did you mean {prefix}")
    suggestion = sentence.removesuffix("?").split(f"did you mean {prefix}")[1]
    assert likeness(suggestion, wrong) >= likeness(right, wrong)  # they differ where two keys are as near, or nearer


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"stage2": {"lerning_rate": 1}}, "stage2.lerning_rate is unknown; did you mean stage2.learning_rate?"),
        ({"stage2": {"learningRate": 1}}, "stage2.learningRate is unknown; did you mean stage2.learning_rate?"),
        ({"stage2": {"Learning-Rate": 1}}, "stage2.Learning-Rate is unknown; did you mean stage2.learning_rate?"),
        ({"learning_rate": 1}, "learning_rate is unknown; did you mean stage1.learning_rate or stage2.learning_rate?"),
        ({"lerning_rate": 1}, "lerning_rate is unknown; did you mean stage1.learning_rate or stage2.learning_rate?"),
        ({"stage1": {"samples": 1}},
         "stage1.samples is unknown; did you mean stage1.batches.samples or stage2.batches.samples?"),
        ({"stage1": {"seed": 1}}, "stage1.seed is unknown; did you mean seed (above the first [table])?"),
        ({"stage_1": {"epochs": 1}}, "stage_1 is unknown; did you mean stage1?"),
        ({"stage1": {"batches": {"optimiser": 1}}},
         "stage1.batches.optimiser is unknown; did you mean stage1.loss.options or stage2.loss.options?"),
        ({"stage1": {"batches": {"zzz": 1}}}, "stage1.batches.zzz is unknown; known here: classes, samples"),
        ({"tracking": {"zzz": 1}}, "tracking.zzz is unknown; known here: nothing, leave it out"),
        ({"named": {"a": {"degree": 1}}}, "named.a.degree is unknown; did you mean named.a.degrees?"),
    ],
)  # fmt: skip
def test_the_answer_is_the_whole_path(values: dict[str, Any], answer: str) -> None:
    assert complaint({"data": "chips", **values}) == answer


def test_the_keys_of_a_free_table_are_free() -> None:
    options = {"nobody": 1, "knows": {"these": 2}}
    assert build(Recipe, {"data": "x", "stage1": {"loss": {"options": options}}}).stage1.loss.options == options


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
    assert read_recipe(Recipe, file, ["stage1.loss.options.kind=hard"]).stage1.loss.options["kind"] == "hard"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stage2.lerning_rate=0.1", "stage2.lerning_rate is unknown; did you mean stage2.learning_rate?"),
        ("stge1.epochs=1", "stge1 is unknown; did you mean stage1?"),
        ("learning_rate=1", "learning_rate is unknown; did you mean stage1.learning_rate or stage2.learning_rate?"),
        ("stage1={epoch=1}", "stage1.epoch is unknown; did you mean stage1.epochs?"),
        ("seed", "a key and a value are needed; write table.key=value"),
        ("=3", "a key and a value are needed; write table.key=value"),
        ("stage1..epochs=3", "a key and a value are needed; write table.key=value"),
        ("notes=7", "notes must be text, found 7; if it is text, write 'notes=\"7\"'"),
        ("seed=1.5", "seed must be a whole number, found 1.5"),
        ("seed=0,1", 'seed must be a whole number, found "0,1"'),
        ("seed=", 'seed must be a whole number, found ""'),
        ("seed=1\nnotes=2", 'seed must be a whole number, found "1\\nnotes=2"'),
        (f"seed={'[' * 9000}", 'seed must be a whole number, found "[[['),
        ("data=", 'data must be a path, found ""'),
        ("classes=[a]", 'classes must be an array, found "[a]"'),
        ("stage1.loss.options.margin=nan", "stage1.loss.options.margin must be a number, found nan"),
        ("stage1.loss.shrinkage=papr", 'stage1.loss.shrinkage must be a number or "paper", found "papr"'),
        ("stage1.epochs.x=3", "stage1.epochs must be a whole number, found {x = 3}"),
        ("mean.0=3", "mean must be an array, found {0 = 3}"),
        ("stage1=3", "stage1 must be a table, found 3"),
        ("notes=\udcff", "notes cannot hold text that is not Unicode"),
    ],
)
def test_what_cannot_be_set_is_refused_as_it_was_typed(file: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file, [override])
    assert str(caught.value).startswith(f"override {override}: {message}")


def test_an_error_of_the_whole_names_the_file_and_what_was_set(file: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file, ["seed=1", "stage1.epochs=-1"])
    assert str(caught.value) == (
        f"{file} with override seed=1, stage1.epochs=-1: stage1: epochs must not be negative, got -1"
    )
    file.write_text('data = "x"\n[stage1]\nepoch = 3\n')
    with pytest.raises(RecipeError) as caught:
        read_recipe(Recipe, file)
    assert str(caught.value) == f"{file}: stage1.epoch is unknown; did you mean stage1.epochs?"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXT, TEXT)
def test_whatever_is_typed_there_is_an_answer(file: Path, name: str, text: str) -> None:
    for override in (f"{name}={text}", f"notes={text}", f"stage1.{name}={text}", f"stage1.loss.options.{name}={text}"):
        said = f"override {override}: "
        try:
            assert read_recipe(Recipe, file, [override]).data is not None
        except RecipeError as error:
            said = str(error)
        assert said.startswith(f"override {override}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = 1\nb = two\n", ", line 2: Invalid value; correct it there"),
        (b"a = 1\n\nb 3\n", ", line 3: Expected '='"),
        (b"a = 1\nb = [1, 2\n\n\n", ", line 2: Unclosed array"),
        (b"a = 1\na = 2\n", ", line 2: Cannot overwrite a value"),
        (b"a = 1\nb = '\xff'\n", ", line 2: not UTF-8; save the file in that encoding"),
        (b"a = " + b"1" * 9999, " cannot be read as TOML (Exceeds the limit"),
        (b"a = " + b"[" * 99999, " cannot be read as TOML ("),
    ],
)
def test_a_malformed_file_is_refused_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "some.toml"
    file.write_bytes(content)
    with pytest.raises(RecipeError) as caught:
        read_file(file)
    assert str(caught.value).startswith(f"{file}{message}")


def test_a_file_that_is_not_there_or_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"none\.toml cannot be read \(No such file.+\); name a recipe"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(RecipeError, match=r"cannot be read \(.+\); name a recipe"):
        read_file(tmp_path)


def test_line_ends_and_the_mark_that_some_editors_put_first_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_bytes("\ufeffa = 'é'\r\nb = 2\r\n".encode())
    assert read_file(tmp_path / "some.toml") == {"a": "é", "b": 2}


@given(st.dictionaries(TEXT, FREE, max_size=4))
def test_a_table_is_written_so_that_it_is_read_as_it_was(values: dict[str, Any]) -> None:
    def with_lists(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: with_lists(part) for name, part in value.items()}
        return [with_lists(part) for part in value] if isinstance(value, tuple) else value

    assert repr(sorted(tomllib.loads(write_table(values)))) == repr(sorted(values))
    assert tomllib.loads(write_table(values)) == with_lists(values)


def test_keys_stand_before_tables_and_a_table_of_tables_needs_no_line() -> None:
    values = {"table": {"inner": {"b": [{"c": 1.5}]}, "none": {}}, "key": 'a "word"\n', "odd key": True}
    assert write_table(values) == (
        'key = "a \\"word\\"\\n"\n"odd key" = true\n\n[table.inner]\nb = [{c = 1.5}]\n\n[table.none]\n'
    )
    assert write_table({}) == ""


@pytest.mark.parametrize("text", ["", "1\nb = 2", "1, 2", "yes", "1\n[b]", "[" * 99999])
def test_what_is_not_one_value_is_text(text: str) -> None:
    assert read_value(text) == text
    assert read_value("[1, true]") == [1, True]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"), (3, "3"), (1e-7, "1e-07"), ("a\tb", '"a\\tb"'), ({"a": [1, -math.inf]}, "{a = [1, -inf]}"),
        ("x" * 99, f'"{"x" * 59}...'),
    ],
)  # fmt: skip
def test_a_value_in_a_sentence(value: object, words: str) -> None:
    assert describe(value) == words


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, None), (2**63 - 1, None), (math.nan, None), ("é", None), (2**63, "a whole number of more than 64 bits"),
        ("\udcff", "text that is not Unicode"), (None, "a value of type NoneType"), (b"x", "a value of type bytes"),
    ],
)  # fmt: skip
def test_what_toml_does_not_hold(value: object, reason: str | None) -> None:
    assert misfit(value) == reason
