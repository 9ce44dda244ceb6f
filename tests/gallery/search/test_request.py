"""What cannot be asked of a gallery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.gallery.search.request import SearchRequest


def request(**changes: Any) -> SearchRequest:
    fields: dict[str, Any] = {"examples": np.ones(4, np.float32), "k": 5}
    return SearchRequest(**fields | changes)


def test_what_can_be_asked() -> None:
    assert request(k=None, false_alarm_rate=1e-3).false_alarm_rate == 1e-3
    assert request(k=np.int64(7), overlap=1, expand=3).k == 7
    assert request(k=None).hits == 50
    assert request(k=None, false_alarm_rate=0.1).hits is None
    assert request(examples="a").examples == ["a"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"examples": []}, "nothing to search for"),
        ({"false_alarm_rate": 0.1}, "`k` or `false_alarm_rate`, not both"),
        ({"k": 0}, "`k` must be a whole number of at least 1, got 0"),
        ({"k": 2.5}, "`k` must be a whole number"),
        ({"k": True}, "`k` must be a whole number"),
        ({"k": None, "false_alarm_rate": 0.0}, "`false_alarm_rate` must be between 0 and 1"),
        ({"k": None, "false_alarm_rate": "1e-3"}, "`false_alarm_rate` must be between 0 and 1"),
        ({"prior": 1.0}, "`prior` must be between 0 and 1"),
        ({"prior": float("nan")}, "`prior` must be between 0 and 1"),
        ({"overlap": 1.1}, "`overlap` must be a share"),
        ({"overlap": None}, "`overlap` must be a share"),
        ({"overlap": -0.1}, "`overlap` must be a share"),
        ({"expand": -1}, "`expand` must be a whole number"),
    ],
)
def test_what_cannot(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        request(**changes)
