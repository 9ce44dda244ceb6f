"""Tiers: a test is in one, and the table says what became of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tiers import TIERS, Run, assign, table

JUNIT = """<testsuites><testsuite time="12.5">
<testcase classname="tests.a" name="good" time="3.25"/>
<testcase classname="tests.a" name="bad" time="1"><failure message="no"/></testcase>
<testcase classname="tests.a" name="broken" time="1"><error message="no"/></testcase>
<testcase classname="tests.b" name="away" time="0.5"><skipped message="no browser"/></testcase>
</testsuite></testsuites>"""
AWAY = """<testsuites><testsuite time="2">
<testcase classname="tests.b" name="away" time="0"><skipped message="no browser"/></testcase>
<testcase classname="tests.b" name="too" time="0"><skipped message="no browser"/></testcase>
</testsuite></testsuites>"""


def test_the_make_file_and_the_markers_have_the_same_tiers(pytestconfig: pytest.Config) -> None:
    text = (Path(__file__).parents[1] / "Makefile").read_text()
    assert f"TIERS := {' '.join(TIERS)}\n" in text
    assert set(TIERS) <= {str(line).split(":")[0] for line in pytestconfig.getini("markers")}


class Collected(pytest.Item):
    """A test with marks and fixtures, as pytest collects it."""

    fixturenames: tuple[str, ...] = ()

    def runtest(self) -> None: ...


def tier_of(session: pytest.Session, name: str, fixtures: tuple[str, ...], *marks: str) -> set[str]:
    item = Collected.from_parent(session, name=name, nodeid=name)
    item.fixturenames = fixtures
    for mark in marks:
        item.add_marker(mark)
    assign([item])
    return {mark.name for mark in item.iter_markers()}


def test_a_fixture_or_a_folder_gives_a_tier_unless_a_mark_does_and_two_marks_are_refused(
    request: pytest.FixtureRequest,
) -> None:
    session = request.session
    assert tier_of(session, "tests/test_x.py::plain", ("tmp_path",)) == set()
    assert tier_of(session, "tests/test_x.py::page", ("tmp_path", "browser")) == {"browser"}
    assert tier_of(session, "tests/demo/test_x.py::story", ()) == {"paper"}
    assert tier_of(session, "tests/test_x.py::killed", ("browser",), "kill") == {"kill"}
    with pytest.raises(pytest.UsageError, match=r"::twice is marked for export and kill; name one tier"):
        tier_of(session, "tests/test_x.py::twice", (), "kill", "export")


def test_the_table_has_times_reasons_and_the_slowest(tmp_path: Path) -> None:
    (tmp_path / "default.xml").write_text(JUNIT)
    (tmp_path / "browser.xml").write_text(AWAY)
    lines = table([Run.read(tmp_path / f"{name}.xml") for name in ("default", "browser")]).splitlines()
    assert lines[1].split() == ["default", "12", "s", "1", "passed,", "2", "failed,", "1", "skipped"]
    assert lines[2].split() == ["browser", "2", "s", "not", "run:", "no", "browser"]
    assert lines[4].split() == ["3", "no", "browser"]
    assert lines[6].split() == ["3.2", "s", "tests.a::good"]
