"""Tiers: a test is in one, and the last lines of a run say what became of each."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter
from tests.tiers import TIERS, Ledger, assign


class Collected(pytest.Item):
    """A test with marks and fixtures, as pytest collects it."""

    fixturenames: tuple[str, ...] = ()

    def runtest(self) -> None: ...


def collected(session: pytest.Session, name: str, fixtures: tuple[str, ...], *marks: str) -> Collected:
    item = Collected.from_parent(session, name=name, nodeid=name)
    item.fixturenames = fixtures
    for mark in marks:
        item.add_marker(mark)
    return item


def test_the_make_file_and_the_markers_have_the_same_tiers(pytestconfig: pytest.Config) -> None:
    text = (Path(__file__).parents[1] / "Makefile").read_text()
    assert f"TIERS := {' '.join(TIERS)}\n" in text
    assert set(TIERS) <= {str(line).split(":")[0] for line in pytestconfig.getini("markers")}


def test_a_fixture_or_a_folder_gives_a_tier_unless_a_mark_does_and_the_default_suite_is_last(
    request: pytest.FixtureRequest,
) -> None:
    items: list[pytest.Item] = [
        collected(request.session, "tests/test_x.py::plain", ("tmp_path",)),
        collected(request.session, "tests/test_x.py::page", ("tmp_path", "browser")),
        collected(request.session, "tests/lab/demo/test_x.py::story", ()),
        collected(request.session, "tests/test_x.py::killed", ("browser",), "kill"),
    ]
    assign(items)
    found = {item.name.split("::")[1]: [mark.name for mark in item.iter_markers()] for item in items}
    assert found == {"killed": ["kill"], "story": ["paper"], "page": ["browser"], "plain": []}
    assert [*found] == ["killed", "story", "page", "plain"]


def test_two_marks_are_refused(request: pytest.FixtureRequest) -> None:
    with pytest.raises(pytest.UsageError, match=r"::twice is marked for export and kill; name one tier"):
        assign([collected(request.session, "tests/test_x.py::twice", (), "kill", "export")])


def test_a_tier_that_cannot_run_says_why_in_one_line_and_the_others_what_they_came_to(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path)

    def report(tier: str, when: str, outcome: str, start: float, why: str = "") -> None:
        ledger.pytest_runtest_logreport(
            pytest.TestReport(
                nodeid="tests/test_x.py::x",
                location=("tests/test_x.py", 1, "x"),
                keywords={},
                outcome=outcome,  # type: ignore[arg-type]
                longrepr=("tests/test_x.py", 1, f"Skipped: {why}") if why else None,
                when=when,  # type: ignore[arg-type]
                duration=2.0,
                start=start,
                stop=start + 2,
                user_properties=[("tier", tier)],
            )
        )

    for place in range(3):
        report("browser", "setup", "skipped", 50, "no chromium on this machine")
        report("default", "setup", "passed", 100 + 10 * place)
        report("default", "call", "failed" if place == 2 else "passed", 102 + 10 * place)
    first, second = ledger.lines()
    assert first.split(maxsplit=1) == ["browser", "not run: no chromium on this machine"]
    assert second.split(maxsplit=1) == ["default", "24 s by the clock,    12 s of tests: 1 failed, 2 passed"]
    ledger.pytest_terminal_summary(TerminalReporter(pytestconfig, StringIO()))
    assert (tmp_path / "tiers.txt").read_text() == f"{first}\n{second}\n"
    assert (tmp_path / "tests.txt").read_text() == "  18.0 tests/test_x.py::x\n"
