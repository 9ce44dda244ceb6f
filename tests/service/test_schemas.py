"""What the API takes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lookdown.service.schemas import AdaptRequest, LabelsRequest, SearchRequest


@pytest.mark.parametrize("example", SearchRequest.model_json_schema()["examples"])
def test_the_examples_of_the_description_are_valid(example: dict[str, Any]) -> None:
    SearchRequest.model_validate(example)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 1_001}, {"k": 0}, {"k": 1, "false_alarm_rate": 0.1}, {"false_alarm_rate": 1}, {"false_alarm_rate": 0},
        {"prior": 0}, {"chip": ""}, {"chip": "x", "embedding": [1]}, {"embedding": []}, {"embedding": [[]]},
        {"embedding": [float("nan")]}, {"embedding": [1e30]}, {"positive": ["x"] * 1_001},
        {"where": {"within": [1, 2]}}, {"where": {"colour": "red"}}, {"where": {"within": [0, 0, float("inf"), 1]}},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchRequest.model_validate(wrong)


def test_defaults() -> None:
    assert SearchRequest(chip="x").turned
    assert SearchRequest(embedding=[[1.0], [2.0]]).embedding == [[1.0], [2.0]]
    assert AdaptRequest().clusters is None
    assert LabelsRequest.model_validate({"labels": {"a": None}}).labels == {"a": None}
