"""What the API takes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lookdown.service.schemas import AdaptBody, LabelsBody, SearchBody


@pytest.mark.parametrize("example", SearchBody.model_json_schema()["examples"])
def test_the_examples_of_the_description_are_valid(example: dict[str, Any]) -> None:
    SearchBody.model_validate(example)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 1_001}, {"k": 0}, {"k": 1, "false_alarm_rate": 0.1}, {"false_alarm_rate": 1}, {"false_alarm_rate": 0},
        {"prior": 0}, {"examples": [""]}, {"examples": "x"}, {"examples": [[]]}, {"examples": [[[]]]},
        {"examples": [[float("nan")]]}, {"examples": [[1e30]]}, {"examples": ["x"] * 501}, {"examples": [[[1]] * 9]},
        {"counter_examples": ["x"] * 501}, {"chip": "x"}, {"overlap": -0.1}, {"expand": 101},
        {"where": {"box": [1, 2]}}, {"where": {"colour": "red"}}, {"where": {"box": [0, 0, float("inf"), 1]}},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchBody.model_validate(wrong)


def test_defaults() -> None:
    assert not SearchBody(examples=["x"]).turned
    assert SearchBody(examples=["x", [1.0], [[1.0], [2.0]]]).examples == ["x", [1.0], [[1.0], [2.0]]]
    assert AdaptBody().clusters is None
    assert LabelsBody.model_validate({"labels": {"a": None}}).labels == {"a": None}
