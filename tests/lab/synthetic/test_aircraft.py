"""Twenty kinds of aircraft."""

from __future__ import annotations

from lookdown.lab.synthetic.aircraft import AIRCRAFT


def test_there_are_twenty() -> None:
    assert len({kind.name for kind in AIRCRAFT}) == 20
    assert {kind.tail for kind in AIRCRAFT} == {"low", "high", "none"}
    assert len({kind.sweep for kind in AIRCRAFT}) >= 10
