"""A row says the same after a round trip, and its target holds from the right side."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lookdown.lab.bench.row import Row, Rows, figure


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [Row("ours", "peer", 1.5, 3.0, 0.49, 1.1), Row.of("a", "ü", 8, 4, limit=2, unit="a second", better="higher")]
    for threads in (1, None):
        told = Rows("Title", rows, threads)
        told.write(tmp_path)
        assert Rows.read(tmp_path) == told


@pytest.mark.parametrize(
    ("ratio", "limit", "better", "met", "times", "wanted"),
    [
        (0.5, 1.0, "lower", True, 2.0, 1.0),
        (1.0, 1.0, "lower", True, 1.0, 1.0),
        (1.25, 1.0, "lower", False, 0.8, 1.0),
        (0.0, 0.1, "lower", True, math.inf, 10.0),
        (2.5, 2.0, "higher", True, 2.5, 2.0),
        (2.0, 2.0, "higher", True, 2.0, 2.0),
        (1.5, 2.0, "higher", False, 1.5, 2.0),
    ],
)
def test_a_target_is_a_bound_on_the_ratio(
    ratio: float, limit: float, better: str, met: bool, times: float, wanted: float
) -> None:
    row = Row("ours", "peer", 4 * ratio, 4, ratio, limit, better=better)  # type: ignore[arg-type]
    assert (row.met, row.times) == (met, times)
    assert row.wanted == pytest.approx(wanted)
    assert row.target == f"at {'most' if better == 'lower' else 'least'} {limit:.3g}"


def test_two_figures_make_a_ratio() -> None:
    assert Row.of("ours", "peer", 3, 4, limit=1).ratio == 0.75


@pytest.mark.parametrize(
    ("value", "text"), [(0.000674, "0.000674"), (12.345, "12.3"), (999.4, "999"), (12_345.6, "12,346"), (0, "0")]
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_row_without_a_target_is_only_reported() -> None:
    row = Row.of("ours", "peer", 3, 4, limit=None)
    assert row.met
    assert row.wanted is None
    assert (row.target, row.verdict) == ("none", "")
    assert [Row.of("ours", "peer", 3, 4, limit=limit).verdict for limit in (0.5, 1)] == ["MISSED", "met"]
