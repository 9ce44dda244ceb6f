"""The arithmetic of plans, against the same worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lookdown.lab.bench.planning import Costs, Node, Plan, planning_page
from lookdown.lab.paper.report import Table

COSTS = Costs(
    stored=4_000,
    held=480,
    embedded={"openvino": 2e-3, "openvino-int8": 1e-3},
    handled=0.5e-3,
    listed=1e-9,
    compared=20e-9,
    assigned=5e-6,
    clustered=15.0,
    probes={100_000: 8, 1_000_000: 16},
)
NODE = Node(cores=16, memory=64e9, share=0.75)


def test_a_billion_chips_by_hand() -> None:
    plan = Plan(1_000_000_000, COSTS, NODE)
    assert plan.machines == 10  # 480 GB over 48 GB each
    assert plan.shard == 100_000_000
    assert plan.cores == 160
    assert plan.hours_to_embed("openvino") == pytest.approx(1e9 * 2.5e-3 / 160 / 3600)
    assert plan.hours_to_embed("openvino-int8") == pytest.approx(1e9 * 1.5e-3 / 160 / 3600)
    assert plan.hours_to_list == pytest.approx(1e9 * 16_384 * 1e-9 / 160 / 3600)  # 2^14, near twice the root
    assert plan.seconds_to_adapt == pytest.approx(15 + 1e9 * 5e-6 / 160)
    assert plan.seconds_to_compare == pytest.approx(1e9 * 20e-9 / 160)


def test_a_small_archive_takes_one_machine() -> None:
    plan = Plan(1_000, COSTS, NODE)
    assert (plan.machines, plan.shard, plan.cores) == (1, 1_000, 16)


@pytest.mark.parametrize(("chips", "probes"), [(100_000, 8), (1_000_000, 16), (10_000_000, 32), (100_000_000, 64)])
def test_probes_grow_by_the_power_that_was_measured(chips: int, probes: int) -> None:
    assert COSTS.probes_at(chips) == probes


def test_probes_that_do_not_grow_stay() -> None:
    assert replace(COSTS, probes={1_000: 4, 10_000: 4}).probes_at(1_000_000_000) == 4


def test_the_page_says_what_each_figure_is(tmp_path: Path) -> None:
    queries = {1_000_000: 0.5e-3, 1_000_000_000: 20e-3}
    page = planning_page(COSTS, NODE, queries, "At 5 chips both take 1 ms.", "Two cores.")
    tables = [part for part in page.parts if isinstance(part, Table)]
    plans = {row[0]: row[1:] for row in tables[1].rows}
    assert tables[1].header == ("", "", "1,000,000 chips", "1,000,000,000 chips")
    assert plans["machines"] == ["arithmetic", "1", "10"]
    assert plans["table on a disk or in a bucket, GB"] == ["arithmetic", "4", "4,000"]
    assert plans["an approximate query, ms on one core of each"] == ["simulated", "0.5", "20"]
    assert plans["such queries a second, all cores"] == ["simulated", "32,000", "800"]
    assert plans["lists that a query looks through"] == ["extrapolated", "16", "64"]
    assert {row[1] for row in tables[1].rows} == {"arithmetic", "simulated", "extrapolated"}
    written = page.write("planning", tmp_path, tmp_path, "lookdown bench planning").read_text()
    assert "lookdown bench planning" in written
    assert "At 5 chips both take 1 ms." in written
    assert "16 cores and 64 GB" in written
