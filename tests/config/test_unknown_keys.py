"""A key that was misspelt finds the one that was meant, whatever the slip."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.config.every_type import Batches, Loss, Recipe, Stage, Turn

from lookdown.config import build
from lookdown.config.schema import keys_of
from lookdown.config.unknown_keys import _slips
from lookdown.errors import RecipeError

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


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_any_slip_in_any_key_is_answered_with_the_right_key(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(list(TABLES)))
    keys = keys_of(TABLES[place])
    right = data.draw(st.sampled_from(list(keys)))
    wrong = misspelt(data, right)
    if wrong in keys:
        return
    values: Any = {wrong: 0}
    for part in reversed(place):
        values = [values] if isinstance(part, int) else {part: values}
    table = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    prefix = f"{table}." if table else ""
    said = complaint({"data": "chips", **values})
    assert said.startswith(f"{prefix}{wrong} is unknown; did you mean ")
    assert f"{prefix}{right}" in said.removesuffix("?").split("did you mean ")[1].split(" or ")


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
         "stage1.batches.optimiser is unknown; known here: classes, samples"),
        ({"tracking": {"optimiser": 1}}, "tracking.optimiser is unknown; known here: nothing, leave it out"),
        ({"named": {"a": {"degree": 1}}}, "named.a.degree is unknown; did you mean named.a.degrees?"),
    ],
)  # fmt: skip
def test_the_answer_is_the_whole_path(values: dict[str, Any], answer: str) -> None:
    assert complaint({"data": "chips", **values}) == answer


def test_the_keys_of_a_free_table_are_free() -> None:
    options = {"nobody": 1, "knows": {"these": 2}}
    assert build(Recipe, {"data": "x", "stage1": {"loss": {"options": options}}}).stage1.loss.options == options


def slips_by_definition(a: str, b: str) -> int:
    """The recursion of the restricted Damerau-Levenshtein distance, word for word."""
    if not a or not b:
        return len(a) + len(b)
    ways = [
        slips_by_definition(a[:-1], b) + 1,
        slips_by_definition(a, b[:-1]) + 1,
        slips_by_definition(a[:-1], b[:-1]) + (a[-1] != b[-1]),
    ]
    if len(a) > 1 and len(b) > 1 and a[-1] == b[-2] and a[-2] == b[-1]:
        ways.append(slips_by_definition(a[:-2], b[:-2]) + 1)
    return min(ways)


@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_slips_are_counted_as_defined(a: str, b: str) -> None:
    assert _slips(a, b) == slips_by_definition(a, b)
