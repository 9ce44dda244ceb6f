"""The one signature in which long work reports its progress."""

from __future__ import annotations

from lookdown.progress import Progress, no_progress


def test_a_function_of_done_total_and_unit_is_a_progress() -> None:
    reports: list[tuple[int, int | None, str]] = []

    def report(done: int, total: int | None, unit: str) -> None:
        reports.append((done, total, unit))

    for progress in (report, no_progress):
        shown: Progress = progress
        shown(3, None, "chips")
    assert reports == [(3, None, "chips")]
