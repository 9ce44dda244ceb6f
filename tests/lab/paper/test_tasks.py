"""The paper's four tasks."""

from __future__ import annotations

from lookdown.lab.paper.tasks import TASKS


def test_tasks_are_named_as_in_the_paper() -> None:
    assert [task.name for task in TASKS] == ["CBRSOR-FGSRSI", "CBRSOR-MAR", "UDA-CBRSOR-FGSRSI", "UDA-CBRSOR-MAR"]
    assert [task.protocol.__name__ for task in TASKS] == ["conventional", "conventional", "uda", "uda"]
