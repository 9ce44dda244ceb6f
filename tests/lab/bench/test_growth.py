"""Exponents are those of the powers that were put in, and the page shows every curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lookdown.lab.bench.growth import Curve, draw, growth_page

pytest.importorskip("matplotlib")

SIZES: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000)


def curve(power: float, name: str = "sorting", sizes: tuple[int, ...] = SIZES) -> Curve:
    return Curve(name, "N numbers", "It is what it is.", sizes, [3e-6 * size**power for size in sizes])


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_a_power_is_found_in_every_decade(power: float) -> None:
    found = curve(power).exponents()
    assert [(low, high) for low, high, _ in found] == [(100, 1_000), (1_000, 10_000)]
    assert [value for *_, value in found] == pytest.approx([power, power], abs=1e-9)


def test_the_exponent_is_the_slope_of_least_squares_over_the_decade() -> None:
    seconds = [0.3, 0.7, 5.0, 4.0, 90.0]
    found = Curve("x", "", "", SIZES, seconds).exponents()
    for (low, high, power), inside in zip(found, (slice(0, 3), slice(2, 5)), strict=True):
        assert (low, high) == (SIZES[inside.start], SIZES[inside.stop - 1])
        x = [np.log(size) for size in SIZES[inside]]
        y = [np.log(taken) for taken in seconds[inside]]
        middle, level = sum(x) / len(x), sum(y) / len(y)
        over = sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True))
        assert power == pytest.approx(over / sum((a - middle) ** 2 for a in x))


def test_the_last_decade_compares_what_a_row_costs() -> None:
    row = curve(1.5).last_decade(limit=2)
    assert row.ratio == pytest.approx(10**0.5)
    assert not row.met
    assert (row.what, row.peer) == ("sorting, a row of 10,000", "a row of 1,000")
    assert row.ours == pytest.approx(3e-6 * 10_000**0.5 * 1e6)
    assert curve(1.0).last_decade(limit=2).met


def test_the_page_has_every_curve_its_exponents_and_its_reason(tmp_path: Path) -> None:
    curves = [curve(1.0), curve(0.5, "searching", (10, 100, 1_000))]
    file = growth_page(curves, "A machine.").write("growth", tmp_path, tmp_path, "lookdown bench growth")
    page = file.read_text()
    for part in (
        "| exponent | 10 to 100 | 100 to 1,000 | 1,000 to 10,000 |",
        "| sorting |  | 1.00 | 1.00 |",
        "| searching | 0.50 | 0.50 |  |",
        "**Sorting** (N numbers). It is what it is.",
        "A machine.",
        "| 3,000 | 0.009 |  |",
    ):
        assert part in page
    assert (tmp_path / "growth.png").stat().st_size > 1000
    (axes,) = draw(curves).axes
    assert {"sorting", "searching"} <= {line.get_label() for line in axes.lines}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
