"""Tables IX to XII: rows, and the figures of the paper beside them."""

from __future__ import annotations

from tests.lab.paper.smoke import smoke

from lookdown.lab.paper.loss_comparison import BASELINES, make
from lookdown.lab.paper.loss_scores import scores
from lookdown.lab.paper.report import Table, spread
from lookdown.lab.paper.rules import COSINE, CPLFPA_AT_TEST, RATIO
from lookdown.lab.paper.tasks import UDA_SHIPS


def test_rows_are_those_evaluations_with_the_papers_beside_them() -> None:
    page = make(smoke(), number=11)
    table = page.parts[0]
    assert isinstance(table, Table)
    by_name = {row[0]: row for row in table.rows}
    assert [row[0] for row in table.rows][: len(BASELINES)] == [f"{loss} loss" for loss in BASELINES]
    for name, loss, rule in (
        ("circle loss", "circle", COSINE),
        ("GLRT, not adapted", "glrt", RATIO),
        ("GLRT, CPLFPA, base K", "glrt", CPLFPA_AT_TEST),
    ):
        found = [100 * one.mean_average_precision for one in scores(smoke(), UDA_SHIPS, loss, rule)]
        assert by_name[name][1] == spread(found)
    assert by_name["circle loss"][4:] == ["53.6", "27.8", "60.7"]
    assert by_name["unified loss on cosine"][4:] == ["-", "-", "-"], "the paper's tables have none"
