"""The ablation: its rows are the evaluations that they say."""

from __future__ import annotations

from pathlib import Path

from tests.lab.paper.smoke import smoke

from lookdown.lab.paper.ablation import ROWS
from lookdown.lab.paper.report import Table, spread
from lookdown.lab.paper.reproduce import TARGETS
from lookdown.lab.paper.tasks import TASKS
from lookdown.metrics import Cosine


def test_ablation_rows_are_those_evaluations(tmp_path: Path) -> None:
    page = TARGETS["table3"](smoke())
    table = page.parts[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [name for name, _, _ in ROWS]
    cases = [smoke().case(TASKS[2], "glrt", seed) for seed in smoke().each_seed]
    cosine = [case.mean_average_precision(Cosine().fit(case.target)) for case in cases]
    ratio = [case.mean_average_precision(case.source) for case in cases]
    assert (table.rows[2][1], table.rows[3][1]) == (spread(cosine), spread(ratio))
    theirs = [row[4] for row in table.rows]
    assert theirs == ["51.2", "-", "48.9", "44.9", "53.3", "-"], "the paper's first row here is the identity loss"
