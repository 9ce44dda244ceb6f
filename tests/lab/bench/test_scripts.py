"""Benchmarks are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookdown.errors import InputError
from lookdown.lab.bench.scripts import FOLDER, chosen, names_in


def test_those_of_the_checkout_are_all_there() -> None:
    assert Path(__file__).parents[3] / "benchmarks" == FOLDER
    assert {"metric", "losses", "evaluation", "growth", "command_line"} <= set(names_in())
    assert "sidebyside" not in names_in()
    assert chosen([]) == [FOLDER / f"{name}.py" for name in names_in()]


def test_some_come_in_the_order_given_and_once() -> None:
    assert [file.stem for file in chosen(["search", "losses", "search"])] == ["search", "losses"]


def test_a_name_that_is_wrong_is_answered() -> None:
    with pytest.raises(InputError, match=r"no benchmark 'loses'.*did you mean losses"):
        chosen(["loses"])
